//! Colours as the eye sees them: how bright they are, how far from each other, and how those who
//! are colour-blind see them.

/// Red, green and blue.
pub(super) type Rgb = (u8, u8, u8);

/// A part of a colour in proportion to its light (sRGB, IEC 61966-2-1).
fn light(part: u8) -> f64 {
    let part = f64::from(part) / 255.0;
    if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
}

/// Relative luminance (WCAG 2.2), from 0 to 1.
pub(super) fn luminance((red, green, blue): Rgb) -> f64 {
    0.2126 * light(red) + 0.7152 * light(green) + 0.0722 * light(blue)
}

#[cfg(test)]
pub(super) use seen::{KINDS, contrast, distance, parse};

/// For tests of colours that are chosen once.
#[cfg(test)]
mod seen {
    use super::{Rgb, light, luminance};

    type Matrix = [[f64; 3]; 3];

    /// Colours as all see them, and as seen without red, green and blue cones (Machado, Oliveira
    /// and Fernandes 2009, severity 1).
    pub(in super::super) const KINDS: [(&str, Matrix); 4] = [
        ("all", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (
            "protanopia",
            [
                [0.152286, 1.052583, -0.204868],
                [0.114503, 0.786281, 0.099216],
                [-0.003882, -0.048116, 1.051998],
            ],
        ),
        (
            "deuteranopia",
            [
                [0.367322, 0.860646, -0.227968],
                [0.280085, 0.672501, 0.047413],
                [-0.011820, 0.042940, 0.968881],
            ],
        ),
        (
            "tritanopia",
            [
                [1.255528, -0.076749, -0.178779],
                [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900],
            ],
        ),
    ];

    /// `#rrggbb`.
    pub(in super::super) fn parse(hex: &str) -> Rgb {
        let part = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
        (part(1), part(3), part(5))
    }

    /// Ratio of the luminances of two colours, at least 1 (WCAG 2.2).
    pub(in super::super) fn contrast(a: Rgb, b: Rgb) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn times(matrix: &Matrix, of: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(of).map(|(factor, part)| factor * part).sum())
    }

    /// Place in Oklab (Ottosson 2020).
    fn oklab(rgb: Rgb, kind: &Matrix) -> [f64; 3] {
        const TO_CONES: Matrix = [
            [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
            [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
            [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
        ];
        const TO_LAB: Matrix = [
            [0.210_454_255_3, 0.793_617_785_0, -0.004_072_046_8],
            [1.977_998_495_1, -2.428_592_205_0, 0.450_593_709_9],
            [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766_0],
        ];
        let seen = times(kind, [light(rgb.0), light(rgb.1), light(rgb.2)]);
        times(&TO_LAB, times(&TO_CONES, seen.map(|part| part.clamp(0.0, 1.0))).map(f64::cbrt))
    }

    /// Distance of two colours as a kind of eye sees them: about 2 can just be told apart.
    pub(in super::super) fn distance(a: Rgb, b: Rgb, kind: &Matrix) -> f64 {
        let (a, b) = (oklab(a, kind), oklab(b, kind));
        100.0 * a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    }
}
