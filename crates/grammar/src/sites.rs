//! The places of a grammar that can be multiplied, and the documents made of them.
//!
//! 1. A part with `*` or `+` is a place to repeat; once for each choice that its copies can make
//!    within a few rules, because copies of one kind may be harmless and of another not.
//! 2. A mention of a rule that leads back to where it stands is a place to nest: the shortest
//!    way back is the level.
//! 3. A walk from mention to mention, at random, nests different levels in each other.

use std::collections::{HashMap, HashSet};

use snowmelt_base::random::lcg;

use crate::derive::{Around, Way};
use crate::pattern::Pattern;
use crate::rules::{Grammar, Part, Path, Rule};

/// Rules within which the choices of a copy are looked for.
const RULES_DOWN: usize = 3;

/// Characters of a unit that its name shows.
const SHOWN: usize = 60;

/// How a place is multiplied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SiteKind {
    /// Copies beside each other.
    Repeat,
    /// Levels within each other.
    Nest,
}

/// A place of a grammar, with the smallest valid document around it.
#[derive(Clone, Debug)]
pub struct Site {
    name: String,
    kind: SiteKind,
    context: Around,
    unit: Around,
    middle: Pattern,
}

impl Site {
    /// The rule, and what is multiplied; no two sites of a grammar have one name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is multiplied.
    pub fn kind(&self) -> SiteKind {
        self.kind
    }

    /// The document with n copies or levels.
    pub fn document(&self, n: usize) -> String {
        let mut out = String::new();
        self.context.before.write(0, &mut out);
        (1..=n).for_each(|number| self.unit.before.write(number, &mut out));
        self.middle.write(n + 1, &mut out);
        (1..=n).rev().for_each(|number| self.unit.after.write(number, &mut out));
        self.context.after.write(0, &mut out);
        out
    }
}

impl Grammar {
    /// All places to multiply: a document of each must be read, or refused by a limit.
    pub fn sites(&self) -> Vec<Site> {
        let ways = self.ways_from(0);
        let mut sites = Vec::new();
        let mut seen = HashSet::new();
        for rule in 0..self.rules.len() {
            let Some(way) = ways.get(&rule) else { continue };
            for mut site in self.repeats(rule, way).into_iter().chain(self.nests(rule, way)) {
                let is_new = seen.insert((site.context.clone(), site.unit.clone()));
                if is_new && site.document(1) != site.document(2) {
                    let same = sites.iter().filter(|s: &&Site| s.name == site.name).count();
                    if same > 0 {
                        site.name = format!("{} at {}", site.name, sites.len());
                    }
                    sites.push(site);
                }
            }
        }
        sites
    }

    fn repeats(&self, rule: usize, way: &Way) -> Vec<Site> {
        let joint = self.rules[rule].joint;
        let mut sites = Vec::new();
        for (path, part) in self.rules[rule].part.places() {
            let Part::Many(inner, _) = part else { continue };
            let to_it = [&way[..], &[path]].concat();
            let context = self.around(&self.rules[0].part, self.rules[0].joint, &to_it);
            let ways = self.choices(inner);
            let units = ways.iter().map(|way| self.through(inner, joint, way));
            for unit in std::iter::once(self.smallest_of(inner, joint)).chain(units) {
                if !unit.is_empty() {
                    let unit = Around { before: unit, after: Pattern::default() };
                    let middle = Pattern::default();
                    sites.push(self.site(rule, SiteKind::Repeat, context.clone(), unit, middle));
                }
            }
        }
        sites
    }

    /// Ways to each choice that can be made within a part.
    fn choices(&self, part: &Part) -> Vec<Way> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        let mut open = vec![(part, Way::new())];
        while let Some((part, way)) = open.pop() {
            for (path, inner) in part.places() {
                let to_it = [&way[..], std::slice::from_ref(&path)].concat();
                let above = path.split_last().map(|(_, above)| part.at(above));
                let is_chosen = matches!(above, Some(Part::Choice(_)));
                if is_chosen || matches!(inner, Part::Many(..) | Part::Maybe(_)) {
                    found.push(to_it.clone());
                }
                if let Part::Rule(rule) = inner
                    && to_it.len() <= RULES_DOWN
                    && seen.insert(*rule)
                {
                    open.insert(0, (&self.rules[*rule].part, to_it));
                }
            }
        }
        found
    }

    fn nests(&self, rule: usize, way: &Way) -> Vec<Site> {
        let levels = self.levels(rule).into_iter().map(|(way, _)| way);
        let (first, own) = (&self.rules[0], &self.rules[rule]);
        levels
            .map(|level| {
                let context = self.around(&first.part, first.joint, way);
                let unit = self.around(&own.part, own.joint, &level);
                let middle = self.smallest_of(&own.part, own.joint);
                self.site(rule, SiteKind::Nest, context, unit, middle)
            })
            .collect()
    }

    /// The mentions in a rule that lead back to it, each with the shortest way back and the rule
    /// that it mentions.
    fn levels(&self, rule: usize) -> Vec<(Way, usize)> {
        let mentions = self.rules[rule].part.mentions();
        let back = |path: Path, to: usize| {
            let rest = self.ways_from(to).remove(&rule)?;
            Some(([&[path][..], &rest].concat(), to))
        };
        mentions.into_iter().filter_map(|mention| back(mention.path, mention.rule)).collect()
    }

    /// The texts around each mention of a rule that leads back to it.
    fn steps(&self, rule: usize) -> Vec<(Around, usize)> {
        let Rule { part, joint, .. } = &self.rules[rule];
        let step = |(way, to): (Way, usize)| (self.around(part, joint, &way[..1]), to);
        self.levels(rule).into_iter().map(step).collect()
    }

    fn site(&self, rule: usize, kind: SiteKind, context: Around, unit: Around, middle: Pattern) -> Site {
        let mut shown = String::new();
        unit.before.write(1, &mut shown);
        if kind == SiteKind::Nest {
            shown.push('…');
            unit.after.write(1, &mut shown);
        }
        let shown: Vec<&str> = shown.split_whitespace().collect();
        let shown: String = shown.join(" ").chars().take(SHOWN).collect();
        let word = if kind == SiteKind::Repeat { "many" } else { "deep" };
        let name = format!("{word} {}: {shown}", self.rules[rule].name);
        Site { name, kind, context, unit, middle }
    }

    /// A document whose levels are of different kinds, at random; `None` where nothing nests.
    pub fn mixed(&self, random: &mut u64, levels: usize) -> Option<String> {
        let ways = self.ways_from(0);
        let nesting: Vec<usize> =
            (0..self.rules.len()).filter(|r| ways.contains_key(r) && !self.levels(*r).is_empty()).collect();
        let mut pick = |n: usize| (lcg(random) >> 33) as usize % n;
        let mut rule = *nesting.get(pick(nesting.len().max(1)))?;
        let first = &self.rules[0];
        let context = self.around(&first.part, first.joint, &ways[&rule]);
        let (mut out, mut afters) = (String::new(), Vec::with_capacity(levels));
        context.before.write(0, &mut out);
        let mut known: HashMap<usize, Vec<(Around, usize)>> = HashMap::new();
        for number in 1..=levels {
            let steps = known.entry(rule).or_insert_with(|| self.steps(rule));
            let (step, to) = &steps[pick(steps.len())];
            step.before.write(number, &mut out);
            afters.push(step.after.clone());
            rule = *to;
        }
        self.smallest_of(&self.rules[rule].part, self.rules[rule].joint).write(levels + 1, &mut out);
        for (number, after) in afters.iter().enumerate().rev() {
            after.write(number + 1, &mut out);
        }
        context.after.write(0, &mut out);
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(grammar: &str, n: usize) -> Vec<String> {
        let sites = Grammar::read(grammar).unwrap().sites();
        let blanks = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        sites.iter().map(|site| blanks(site.document(n))).collect()
    }

    #[test]
    fn what_repeats_is_repeated_with_each_of_its_choices() {
        let grammar = "Ask ::= 'ASK' Name+\nName ::= '?\\i' | Iri\nIri ~~= '<' '\\i' '>'";
        assert_eq!(documents(grammar, 3), ["ASK ?1 ?2 ?3", "ASK <1> <2> <3>"]);
        let with_comma = "List ::= 'a' ( ',' 'b' 'c'? )*";
        assert_eq!(documents(with_comma, 2), ["a , b , b", "a , b c , b c"]);
    }

    #[test]
    fn what_holds_itself_is_nested_by_each_of_its_ways() {
        let grammar = "A ::= 'x' | '(' A ')' | '[' B ']'\nB ::= A | '!' A";
        let of_b = ["[ [ [ x ] ] ]", "[ ! [ ! [ x ] ] ]"];
        assert_eq!(documents(grammar, 2), [&["( ( x ) )", "[ [ x ] ]"], &of_b[..]].concat());
    }

    #[test]
    fn levels_have_numbers_and_chains_go_on() {
        let grammar = "A ::= '{' ( 't\\i=t\\j' )* '}'";
        assert_eq!(documents(grammar, 2), ["{ t1=t2 t2=t3 }"]);
    }

    #[test]
    fn a_mixed_document_has_as_many_levels_as_asked_for() {
        let grammar = Grammar::read("S ::= 's' A\nA ::= 'x' | '(' A ')' | '[' B ']'\nB ::= '!' A").unwrap();
        let mut random = snowmelt_base::test_seed(3);
        for levels in [0, 1, 10, 1000] {
            let text = grammar.mixed(&mut random, levels).unwrap();
            // the way to where it begins, and its smallest end, may open two more
            let opened = text.matches(['(', '[', '!']).count();
            assert!((levels..levels + 3).contains(&opened), "{text}");
        }
    }
}
