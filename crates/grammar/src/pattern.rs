//! Texts with numbers to be put in.

/// A piece of a pattern.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Piece {
    Text(String),
    /// the number of the copy or level
    Number,
    /// the number after it
    Next,
}

/// A text that differs from copy to copy by numbers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Pattern(Vec<Piece>);

impl Pattern {
    pub fn push(&mut self, piece: Piece) {
        match (self.0.last_mut(), piece) {
            (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(&text),
            (_, Piece::Text(text)) if text.is_empty() => {}
            (_, piece) => self.0.push(piece),
        }
    }

    pub fn append(&mut self, other: &Pattern) {
        other.0.iter().for_each(|piece| self.push(piece.clone()));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes it with a number put in.
    pub fn write(&self, number: usize, out: &mut String) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Number => out.push_str(&number.to_string()),
                Piece::Next => out.push_str(&(number + 1).to_string()),
            }
        }
    }
}
