//! Colours of pages and pictures. One style sheet speaks of colours by name; a page defines the
//! names for light and dark, a picture that stands alone has them replaced.

/// Colours by name.
#[derive(Debug, Clone, Copy)]
pub struct Theme {
    colours: &'static [(&'static str, &'static str)],
}

impl Theme {
    /// Dark ink on white.
    pub const LIGHT: Theme = Theme {
        colours: &[
            ("ink", "#1b2330"),
            ("soft", "#5b6675"),
            ("paper", "#ffffff"),
            ("page", "#f6f7f9"),
            ("grid", "#e3e7ec"),
            ("rule", "#c9d0d8"),
            ("warn", "#8a4b00"),
            ("warn-page", "#fff4e0"),
            ("link", "#0b62b0"),
            ("s0", "#0b6fc4"),
            ("s1", "#d1495b"),
            ("s2", "#1b8a5a"),
            ("s3", "#b7791f"),
            ("s4", "#7a4fbf"),
            ("s5", "#0f8b9d"),
            ("s6", "#b0418f"),
            ("s7", "#5d6b1e"),
        ],
    };

    /// Light ink on near black.
    pub const DARK: Theme = Theme {
        colours: &[
            ("ink", "#e8ecf1"),
            ("soft", "#a0acba"),
            ("paper", "#161b22"),
            ("page", "#0d1117"),
            ("grid", "#262e38"),
            ("rule", "#3a4552"),
            ("warn", "#ffcf87"),
            ("warn-page", "#33260f"),
            ("link", "#7cbcff"),
            ("s0", "#58a6ff"),
            ("s1", "#ff7b86"),
            ("s2", "#4ecb8d"),
            ("s3", "#e8b04a"),
            ("s4", "#b898f5"),
            ("s5", "#4cc9dc"),
            ("s6", "#ee86cb"),
            ("s7", "#b3c25a"),
        ],
    };

    /// As CSS custom properties.
    pub(super) fn properties(&self) -> String {
        self.colours.iter().map(|(name, colour)| format!("--{name}:{colour};")).collect()
    }

    /// `style` with every `var(--name)` replaced by its colour.
    pub(super) fn resolve(&self, style: &str) -> String {
        // Every use ends with the parenthesis, so no name is mistaken for the beginning of
        // another.
        self.colours
            .iter()
            .fold(style.to_string(), |style, (name, colour)| style.replace(&format!("var(--{name})"), colour))
    }
}

/// Number of colours for series; later ones take them again from the first.
pub(super) const SERIES_COLOURS: usize = 8;

/// Class of the `i`th series.
pub(super) fn series_class(i: usize) -> String {
    format!("s{}", i % SERIES_COLOURS)
}

/// Style of drawings, shared by pages and pictures.
pub(super) const DRAWING: &str = include_str!("drawing.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_themes_name_every_colour() {
        let names = |theme: Theme| theme.colours.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        assert_eq!(names(Theme::LIGHT), names(Theme::DARK));
        for theme in [Theme::LIGHT, Theme::DARK] {
            assert!(!theme.resolve(DRAWING).contains("var("), "{}", theme.resolve(DRAWING));
        }
    }
}
