//! SVG drawings as PNG files, with the fonts of this machine. Compiled with the feature `png`.

#[cfg(feature = "png")]
use resvg::{tiny_skia, usvg};

/// Pixels per unit of the drawing: sharp on dense screens and on paper.
#[cfg(feature = "png")]
const SCALE: f32 = 2.0;

/// The PNG of a drawing; the error says in words what is missing.
#[cfg(feature = "png")]
pub fn png(svg: &str) -> Result<Vec<u8>, String> {
    let mut options = usvg::Options::default();
    options.fontdb_mut().load_system_fonts();
    if options.fontdb.is_empty() {
        return Err("no font is installed, so the text of pictures cannot be drawn; install one (fonts-dejavu-core), \
                    or save PNG from the page in a browser"
            .into());
    }
    // The generic name of most style sheets, for a machine with whatever fonts.
    let family = options.fontdb.faces().find(|face| {
        face.families.iter().any(|(name, _)| name == "DejaVu Sans" || name == "Liberation Sans")
    });
    let family = family.or(options.fontdb.faces().next()).and_then(|face| face.families.first());
    let family = family.map_or(String::new(), |(name, _)| name.clone());
    options.fontdb_mut().set_sans_serif_family(&family);
    options.font_family = family;
    let tree = usvg::Tree::from_str(svg, &options).map_err(|e| e.to_string())?;
    let size = tree.size();
    let (width, height) = ((size.width() * SCALE).ceil() as u32, (size.height() * SCALE).ceil() as u32);
    let mut pixels = tiny_skia::Pixmap::new(width, height).ok_or("the drawing has no size")?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| e.to_string())
}

/// Without the feature there is no PNG; the error names the ways to one.
#[cfg(not(feature = "png"))]
pub fn png(_svg: &str) -> Result<Vec<u8>, String> {
    Err("this snowmelt was built without PNG pictures; build it with them (cargo install --path crates/cli \
         --features png), write SVG files (--svg DIR), or save PNG from the page in a browser"
        .into())
}

#[cfg(all(test, feature = "png"))]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_becomes_a_png_of_twice_its_size() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"30\" height=\"20\">\
                   <style>.a { fill: #ff0000; }</style><rect class=\"a\" width=\"30\" height=\"20\"/></svg>";
        let png = match png(svg) {
            Ok(png) => png,
            Err(why) if why.contains("font") => {
                println!("skipped: {why}");
                return;
            }
            Err(why) => panic!("{why}"),
        };
        let drawn = tiny_skia::Pixmap::decode_png(&png).unwrap();
        assert_eq!((drawn.width(), drawn.height()), (60, 40));
        let pixel = drawn.pixel(30, 20).unwrap();
        assert_eq!((pixel.red(), pixel.green(), pixel.blue()), (255, 0, 0));
        assert!(super::png("no drawing").is_err());
    }
}
