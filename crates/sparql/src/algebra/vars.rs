//! Sets of variables: bits by number.

use super::Var;

/// A set of variables.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct VarSet {
    // no trailing zero words, so that equal sets are equal values
    words: Vec<u64>,
}

impl VarSet {
    pub fn insert(&mut self, v: Var) {
        let word = v.0 as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (v.0 % 64);
    }

    pub fn remove(&mut self, v: Var) {
        if let Some(w) = self.words.get_mut(v.0 as usize / 64) {
            *w &= !(1 << (v.0 % 64));
        }
        self.trim();
    }

    pub fn contains(&self, v: Var) -> bool {
        self.words.get(v.0 as usize / 64).is_some_and(|w| w & (1 << (v.0 % 64)) != 0)
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub fn union(&self, other: &Self) -> Self {
        let (long, short) = if self.words.len() >= other.words.len() { (self, other) } else { (other, self) };
        let mut words = long.words.clone();
        words.iter_mut().zip(&short.words).for_each(|(a, b)| *a |= b);
        Self { words }
    }

    pub fn intersection(&self, other: &Self) -> Self {
        let mut set = Self { words: self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect() };
        set.trim();
        set
    }

    pub fn minus(&self, other: &Self) -> Self {
        let mut set = self.clone();
        set.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= !b);
        set.trim();
        set
    }

    pub fn is_subset(&self, of: &Self) -> bool {
        self.words.iter().enumerate().all(|(i, w)| w & !of.words.get(i).copied().unwrap_or(0) == 0)
    }

    pub fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    pub fn iter(&self) -> impl Iterator<Item = Var> + '_ {
        self.words.iter().enumerate().filter(|(_, w)| **w != 0).flat_map(|(i, w)| {
            (0..64).filter(move |b| w & (1 << b) != 0).map(move |b| Var(i as u32 * 64 + b))
        })
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

impl FromIterator<Var> for VarSet {
    fn from_iter<I: IntoIterator<Item = Var>>(iter: I) -> Self {
        let mut set = Self::default();
        set.extend(iter);
        set
    }
}

impl Extend<Var> for VarSet {
    fn extend<I: IntoIterator<Item = Var>>(&mut self, iter: I) {
        iter.into_iter().for_each(|v| self.insert(v));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_as_a_set() {
        let a: VarSet = [1, 63, 64, 200].map(Var).into_iter().collect();
        let b: VarSet = [63, 200].map(Var).into_iter().collect();
        assert_eq!(a.minus(&b), [1, 64].map(Var).into_iter().collect());
        assert_eq!(a.intersection(&b), b);
        assert_eq!(a.union(&b), a);
        assert!(b.is_subset(&a) && !a.is_subset(&b));
        assert_eq!(a.iter().map(|v| v.0).collect::<Vec<_>>(), [1, 63, 64, 200]);
        let mut c = b.clone();
        c.remove(Var(200));
        c.remove(Var(63));
        assert!(c.is_empty() && c == VarSet::default());
    }
}
