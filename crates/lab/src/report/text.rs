//! How wide words are drawn, and where they are broken or cut. A drawing is made without a font at
//! hand: widths are those of DejaVu Sans, one of the widest in use, so that text fits in others
//! too.

/// Size of the letters of names and values, as in the style of drawings.
pub(super) const NAME_SIZE: f64 = 13.0;
/// Size of the letters at ticks.
pub(super) const TICK_SIZE: f64 = 12.0;
/// Size of the letters in the name of a band.
pub(super) const BAND_SIZE: f64 = 11.0;
/// Distance of the lines of a name.
pub(super) const LINE_HEIGHT: f64 = 16.0;

/// Width of a text in letters of a size.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(letter).sum::<f64>() * size
}

/// Width of a letter, as a share of its size.
fn letter(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | 'J' | '\'' | '|' => 0.3,
        ' ' | '.' | ',' | ':' | ';' | '/' | 'f' | '-' | '(' | ')' | 't' | '[' | ']' => 0.39,
        'r' | '"' | '*' | '_' | '–' => 0.5,
        'c' | 's' | 'z' | 'L' | 'F' => 0.58,
        'm' | 'W' | 'M' | '%' => 0.99,
        'w' | '+' | '=' | '<' | '>' | '×' | '÷' | '#' | '~' | '&' => 0.84,
        'a'..='z' | '0'..='9' | 'µ' => 0.64,
        'A'..='Z' => 0.77,
        _ => 1.0,
    }
}

/// A text in lines no wider than `room`, at most `most` of them: broken between words, else behind
/// punctuation, else anywhere. What is left out is told by dots.
pub(super) fn wrap(text: &str, room: f64, size: f64, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for piece in pieces(text, room, size) {
        let line = lines.last_mut().expect("there is one");
        if line.is_empty() || width(line, size) + width(piece.trim_end(), size) <= room {
            line.push_str(piece);
        } else {
            lines.push(piece.to_owned());
        }
    }
    let is_cut = lines.len() > most;
    lines.truncate(most.max(1));
    let last = lines.last_mut().expect("there is one");
    if is_cut {
        let end = last.trim_end().to_owned() + "…";
        *last = if width(&end, size) <= room { end } else { cut(&end, room, size) };
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// Parts between which a line may end; together they are the text.
fn pieces(text: &str, room: f64, size: f64) -> Vec<&str> {
    let mut pieces = Vec::new();
    for word in text.split_inclusive(' ') {
        if width(word.trim_end(), size) <= room {
            pieces.push(word);
            continue;
        }
        for part in word.split_inclusive(['/', '-', '_', '.', ',', ':', '?', '&', '=']) {
            let mut rest = part;
            while width(rest.trim_end(), size) > room {
                let fits = fitting(rest, room, size).max(1);
                let end = rest.char_indices().nth(fits).map_or(rest.len(), |(at, _)| at);
                let (first, after) = rest.split_at(end);
                pieces.push(first);
                rest = after;
            }
            pieces.push(rest);
        }
    }
    pieces
}

/// How many letters of a text fit.
fn fitting(text: &str, room: f64, size: f64) -> usize {
    let mut free = room;
    text.chars()
        .take_while(|c| {
            free -= letter(*c) * size;
            free >= 0.0
        })
        .count()
}

/// As much of a text as fits, with dots for the part that is left out.
pub(super) fn cut(text: &str, room: f64, size: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let fits = fitting(text, room - width("…", size), size);
    let kept: String = text.chars().take(fits).collect();
    format!("{}…", kept.trim_end_matches([' ', '…']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_lose_nothing_unless_they_are_told_to() {
        let names = [
            "io_uring 32k depth 1 direct sequential",
            "http://localhost:8890/sparql?default-graph-uri=urn:a-very-long-name/without/a/blank",
            "Wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww",
            "",
            "a  b",
        ];
        for name in names {
            for room in [30.0, 80.0, 200.0, 1000.0] {
                let lines = wrap(name, room, NAME_SIZE, 99);
                assert!(lines.iter().all(|line| width(line, NAME_SIZE) <= room), "{room}: {lines:?}");
                let solid = |text: &str| text.replace(' ', "");
                assert_eq!(solid(&lines.concat()), solid(name), "{room}: {lines:?}");
                let two = wrap(name, room, NAME_SIZE, 2);
                assert!(two.len() <= 2 && two.iter().all(|line| width(line, NAME_SIZE) <= room), "{two:?}");
                assert_eq!(two.last().unwrap().ends_with('…'), lines.len() > 2, "{two:?} of {lines:?}");
                assert!(!two.concat().contains("……"), "{two:?}");
            }
        }
        assert_eq!(wrap("one two three", 60.0, NAME_SIZE, 9), ["one two", "three"]);
    }

    #[test]
    fn a_text_is_cut_where_it_does_not_fit() {
        assert_eq!(cut("short", 100.0, NAME_SIZE), "short");
        let long = cut("a name that is much longer than its room", 100.0, NAME_SIZE);
        assert!(long.starts_with("a name") && long.ends_with('…') && width(&long, NAME_SIZE) <= 100.0);
    }
}
