//! Content codings (RFC 9110, section 8.4): gzip, zstd and br, of answers and of request bodies.
//!
//! Windows of answers are small, because there is an encoder for each answer under way. Coders take
//! their memory out of the budget; an answer for which there is none goes out as it is.

use std::io::{self, Write};

use brotli::{CompressorWriter, DecompressorWriter};
use flate2::Compression;
use flate2::write::{GzEncoder, MultiGzDecoder};
use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderValue};
use zstd::stream::{raw, zio};

use crate::negotiate::{parse_range, quality_of_token};
use crate::refusal::Refusal;

/// Memory that an encoder may take.
pub const ENCODER_BYTES: u64 = 8 << 20;

/// The codings, for messages and for the header that asks for them.
pub const CODINGS: &str = "gzip, zstd, br";

/// Window of zstd, as a power of two, of answers; and the most that a body may ask for, which
/// is what every decoder has to have (RFC 8878, 3.1.1.1.2).
const ZSTD_WINDOW_LOG: u32 = 18;
const ZSTD_MOST_WINDOW_LOG: u32 = 23;
const ZSTD_LEVEL: i32 = 1;
const BROTLI_QUALITY: u32 = 3;
const BROTLI_WINDOW_LOG: u32 = 18;
const BROTLI_BUFFER: usize = 16 << 10;

/// A coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    Gzip,
    Zstd,
    Brotli,
}

impl Coding {
    /// All codings, the preferred one first.
    const ALL: [Self; 3] = [Self::Zstd, Self::Gzip, Self::Brotli];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Brotli => "br",
        }
    }

    /// Memory that a decoder may take: the largest window that a body may ask for, and buffers.
    pub fn decoder_bytes(self) -> u64 {
        match self {
            Self::Gzip => 1 << 20,
            Self::Zstd => 2 << ZSTD_MOST_WINDOW_LOG,
            Self::Brotli => 24 << 20,
        }
    }

    /// The coding of that name.
    fn named(name: &str) -> Option<Self> {
        let name = if name.eq_ignore_ascii_case("x-gzip") { "gzip" } else { name };
        Self::ALL.into_iter().find(|coding| coding.name().eq_ignore_ascii_case(name))
    }

    /// The coding that a client likes best; `None` when it wants none.
    pub fn accepted(headers: &HeaderMap) -> Option<Self> {
        let accepted = headers.get_all(header::ACCEPT_ENCODING).iter();
        let accepted: Vec<String> =
            accepted.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
        let ranges: Vec<(&str, f32)> =
            accepted.iter().flat_map(|line| line.split(',')).map(parse_range).collect();
        let plain = quality_of_token("identity", &ranges).unwrap_or(0.0);
        let mut best: Option<(f32, Self)> = None;
        for coding in Self::ALL {
            let quality = quality_of_token(coding.name(), &ranges).unwrap_or(0.0);
            if quality > 0.0 && quality >= plain && best.is_none_or(|(q, _)| quality > q) {
                best = Some((quality, coding));
            }
        }
        best.map(|(_, coding)| coding)
    }

    /// The coding of a request's body; `None` when it is sent as it is.
    ///
    /// # Errors
    /// One that is not known, or several on top of each other.
    pub fn of_body(headers: &HeaderMap) -> Result<Option<Self>, Refusal> {
        let mut names = headers.get_all(header::CONTENT_ENCODING).iter();
        let (Some(name), None) = (names.next(), names.next()) else {
            return if headers.contains_key(header::CONTENT_ENCODING) {
                Err(unknown("several"))
            } else {
                Ok(None)
            };
        };
        let name = String::from_utf8_lossy(name.as_bytes()).trim().to_owned();
        if name.is_empty() || name.eq_ignore_ascii_case("identity") {
            return Ok(None);
        }
        Self::named(&name).map(Some).ok_or_else(|| unknown(&name))
    }

    /// The value of a Content-Encoding header.
    pub fn value(self) -> HeaderValue {
        HeaderValue::from_static(self.name())
    }
}

fn unknown(name: &str) -> Refusal {
    Refusal::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        format!("Content-Encoding '{name}' is not known: send the body as it is, or in one of {CODINGS}"),
    )
}

/// Compresses an answer piece by piece.
pub enum Encoder {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Brotli(Box<CompressorWriter<Vec<u8>>>),
}

impl Encoder {
    /// An encoder.
    ///
    /// # Errors
    /// The library has no memory.
    pub fn new(coding: Coding) -> io::Result<Self> {
        Ok(match coding {
            Coding::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), Compression::fast())),
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                encoder.window_log(ZSTD_WINDOW_LOG)?;
                Self::Zstd(encoder)
            }
            Coding::Brotli => Self::Brotli(Box::new(CompressorWriter::new(
                Vec::new(),
                BROTLI_BUFFER,
                BROTLI_QUALITY,
                BROTLI_WINDOW_LOG,
            ))),
        })
    }

    /// Compresses some more bytes and returns the output, which may be empty.
    pub fn encode(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => encoder.write_all(bytes)?,
            Self::Zstd(encoder) => encoder.write_all(bytes)?,
            Self::Brotli(encoder) => encoder.write_all(bytes)?,
        }
        Ok(std::mem::take(match self {
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
            Self::Brotli(encoder) => encoder.get_mut(),
        }))
    }

    /// Ends the answer and returns the last bytes.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
            Self::Brotli(encoder) => Ok(encoder.into_inner()),
        }
    }
}

/// Decompresses a body into `W`. However much a few bytes turn into, `W` gets it piece by piece,
/// and may refuse to take more.
pub enum Decoder<W: Write> {
    Plain(W),
    Gzip(MultiGzDecoder<W>),
    Zstd(zio::Writer<W, raw::Decoder<'static>>),
    Brotli(Box<DecompressorWriter<W>>),
}

impl<W: Write> Decoder<W> {
    /// A decoder.
    ///
    /// # Errors
    /// The library has no memory.
    pub fn new(coding: Option<Coding>, to: W) -> io::Result<Self> {
        Ok(match coding {
            None => Self::Plain(to),
            Some(Coding::Gzip) => Self::Gzip(MultiGzDecoder::new(to)),
            Some(Coding::Zstd) => {
                // Not the library's own writer, which takes half a frame for all of it.
                let mut decoder = raw::Decoder::new()?;
                decoder.set_parameter(raw::DParameter::WindowLogMax(ZSTD_MOST_WINDOW_LOG))?;
                Self::Zstd(zio::Writer::new(to, decoder))
            }
            Some(Coding::Brotli) => Self::Brotli(Box::new(DecompressorWriter::new(to, BROTLI_BUFFER))),
        })
    }

    /// The target, when the body is not compressed.
    pub fn plain(&self) -> Option<&W> {
        match self {
            Self::Plain(to) => Some(to),
            _ => None,
        }
    }

    /// Takes some more of the body.
    ///
    /// # Errors
    /// The body is not what its coding says, or `W` refuses.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(to) => to.write_all(bytes),
            Self::Gzip(decoder) => decoder.write_all(bytes),
            Self::Zstd(decoder) => decoder.write_all(bytes),
            Self::Brotli(decoder) => decoder.write_all(bytes),
        }
    }

    /// Ends the body and returns the target.
    ///
    /// # Errors
    /// It breaks off.
    pub fn finish(self) -> io::Result<W> {
        let breaks_off = || io::Error::new(io::ErrorKind::UnexpectedEof, "it breaks off");
        match self {
            Self::Plain(to) => Ok(to),
            Self::Gzip(mut decoder) => {
                decoder.try_finish()?;
                decoder.finish()
            }
            Self::Zstd(mut decoder) => {
                decoder.finish()?;
                Ok(decoder.into_inner().0)
            }
            Self::Brotli(decoder) => decoder.into_inner().map_err(|_| breaks_off()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(value: &str) -> Option<Coding> {
        Coding::accepted(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, value.parse().unwrap())]))
    }

    #[test]
    fn what_is_liked_best_is_taken() {
        assert_eq!(Coding::accepted(&HeaderMap::new()), None);
        for (value, coding) in [
            ("gzip, deflate, br, zstd", Some(Coding::Zstd)),
            ("gzip, deflate, br", Some(Coding::Gzip)),
            ("br;q=1.0, gzip;q=0.8, *;q=0.1", Some(Coding::Brotli)),
            ("*", Some(Coding::Zstd)),
            ("zstd;q=0, *", Some(Coding::Gzip)),
            ("identity, gzip;q=0.5", None),
            ("deflate", None),
            ("gzip;q=0", None),
            ("", None),
        ] {
            assert_eq!(accepted(value), coding, "{value:?}");
        }
    }

    #[test]
    fn what_is_compressed_comes_back() {
        let text: Vec<u8> =
            (0..300_000u32).flat_map(|i| format!("<urn:{}> ", i % 977).into_bytes()).collect();
        for coding in Coding::ALL {
            let mut encoder = Encoder::new(coding).unwrap();
            let mut packed = Vec::new();
            for piece in text.chunks(70_001) {
                packed.extend(encoder.encode(piece).unwrap());
            }
            packed.extend(encoder.finish().unwrap());
            assert!(packed.len() < text.len() / 4, "{coding:?}: {}", packed.len());
            for piece in [1, 1000, packed.len()] {
                let mut decoder = Decoder::new(Some(coding), Vec::new()).unwrap();
                packed.chunks(piece).for_each(|part| decoder.write(part).unwrap());
                assert!(decoder.finish().unwrap() == text, "{coding:?} in pieces of {piece}");
            }
            let mut cut = Decoder::new(Some(coding), Vec::new()).unwrap();
            let whole = cut.write(&packed[..packed.len() / 2]).and_then(|()| cut.finish());
            assert!(whole.is_err(), "{coding:?}: half of it is not taken for all");
            let mut wrong = Decoder::new(Some(coding), Vec::new()).unwrap();
            assert!(wrong.write(&[7; 1000]).and_then(|()| wrong.finish()).is_err(), "{coding:?}");
        }
    }

    /// A few bytes that turn into a lot.
    #[test]
    fn the_receiver_may_refuse_to_take_more() {
        struct Most(usize);
        impl Write for Most {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for coding in Coding::ALL {
            let mut encoder = Encoder::new(coding).unwrap();
            let mut packed = Vec::new();
            (0..64).for_each(|_| packed.extend(encoder.encode(&vec![0; 1 << 20]).unwrap()));
            packed.extend(encoder.finish().unwrap());
            assert!(packed.len() < 400_000, "{coding:?}: {}", packed.len());
            let mut decoder = Decoder::new(Some(coding), Most(1 << 20)).unwrap();
            let refused = decoder.write(&packed).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge, "{coding:?}");
        }
    }
}
