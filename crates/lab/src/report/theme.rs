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
            ("shade", "#9aa5b1"),
            ("warn", "#8a4b00"),
            ("warn-page", "#fff4e0"),
            ("link", "#0b62b0"),
            ("s0", "#2260cb"),
            ("s1", "#c21066"),
            ("s2", "#689f82"),
            ("s3", "#c08203"),
            ("s4", "#846bf4"),
            ("s5", "#156751"),
            ("s6", "#b15ba8"),
            ("s7", "#667005"),
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
            ("shade", "#5a6776"),
            ("warn", "#ffcf87"),
            ("warn-page", "#33260f"),
            ("link", "#7cbcff"),
            ("s0", "#5388fa"),
            ("s1", "#ff7080"),
            ("s2", "#79e6ad"),
            ("s3", "#f2b53d"),
            ("s4", "#cdb2ff"),
            ("s5", "#02b49e"),
            ("s6", "#ca5bc1"),
            ("s7", "#a49431"),
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
    use super::super::colour::{KINDS, Rgb, contrast, distance, parse};
    use super::*;

    #[test]
    fn both_themes_name_every_colour() {
        let names = |theme: Theme| theme.colours.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        assert_eq!(names(Theme::LIGHT), names(Theme::DARK));
        for theme in [Theme::LIGHT, Theme::DARK] {
            assert!(!theme.resolve(DRAWING).contains("var("), "{}", theme.resolve(DRAWING));
        }
    }

    fn named(theme: Theme, name: &str) -> Rgb {
        let found = theme.colours.iter().find(|(other, _)| *other == name);
        parse(found.unwrap_or_else(|| panic!("no colour {name}")).1)
    }

    #[test]
    fn words_and_lines_can_be_read() {
        for theme in [Theme::LIGHT, Theme::DARK] {
            for (on, names) in [
                ("paper", &["ink", "soft", "link"][..]),
                ("page", &["ink", "soft", "link"]),
                ("warn-page", &["warn"]),
            ] {
                for name in names {
                    let contrast = contrast(named(theme, name), named(theme, on));
                    assert!(contrast >= 4.5, "{name} on {on}: {contrast:.2}");
                }
            }
            for i in 0..SERIES_COLOURS {
                let contrast = contrast(named(theme, &format!("s{i}")), named(theme, "paper"));
                assert!(contrast >= 3.0, "s{i}: {contrast:.2}");
            }
        }
    }

    #[test]
    fn series_differ_for_every_eye() {
        // About 2 can just be told apart side by side; lines are thin and apart. Tritanopia is
        // rare.
        let least = |kind: &str, series: usize| match (kind, series < 4) {
            ("tritanopia", false) => 6.5,
            ("tritanopia", true) => 8.9,
            (_, false) => 8.0,
            (_, true) => 10.0,
        };
        for theme in [Theme::LIGHT, Theme::DARK] {
            for (kind, matrix) in &KINDS {
                for a in 0..SERIES_COLOURS {
                    for b in 0..a {
                        let [first, second] = [a, b].map(|i| named(theme, &format!("s{i}")));
                        let distance = distance(first, second, matrix);
                        assert!(distance >= least(kind, a), "{kind}: s{b} and s{a} are {distance:.1} apart");
                    }
                }
            }
        }
    }
}
