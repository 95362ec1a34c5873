use super::*;

fn tokens(text: &str) -> Vec<&str> {
    let mut lexer = Lexer::new(Window::whole(text, usize::MAX));
    let mut all = Vec::new();
    loop {
        let token = lexer.next();
        if token.kind == Kind::End {
            return all;
        }
        all.push(&text[token.span.start..token.span.end]);
    }
}

fn kinds(text: &str) -> Vec<Kind> {
    let mut lexer = Lexer::new(Window::whole(text, usize::MAX));
    std::iter::from_fn(|| Some(lexer.next().kind).filter(|kind| *kind != Kind::End)).collect()
}

#[test]
fn the_longest_token_is_taken() {
    assert_eq!(tokens("?a<?b&&?c>?d"), ["?a", "<?b&&?c>", "?d"]);
    assert_eq!(tokens("?a <?b && ?c>?d"), ["?a", "<", "?b", "&&", "?c", ">", "?d"]);
    assert_eq!(tokens("?x-1+ 2.5e3.x:a.b."), ["?x", "-1", "+", "2.5e3", ".", "x:a.b", "."]);
    assert_eq!(
        tokens("<<(<a> a \"b\")>>{|~ _:a.b.|}>>"),
        ["<<(", "<a>", "a", "\"b\"", ")>>", "{|", "~", "_:a.b", ".", "|}", ">>"]
    );
    assert_eq!(
        tokens("a.b.c d:e\\-%20f. :p+ :q?"),
        ["a", ".", "b", ".", "c", "d:e\\-%20f", ".", ":p", "+", ":q", "?"]
    );
    assert_eq!(
        tokens("'''a'b''' 'x'@en-GB--ltr^^ \"\" # no\n1.e2 1. .5"),
        ["'''a'b'''", "'x'", "@en-GB--ltr", "^^", "\"\"", "1.e2", "1", ".", ".5"]
    );
    assert_eq!(
        kinds("+5 5. 5.5 5e1 a:"),
        [
            Kind::Number(Number::Integer),
            Kind::Number(Number::Integer),
            Kind::Sign(Sign::Dot),
            Kind::Number(Number::Decimal),
            Kind::Number(Number::Double),
            Kind::Name,
        ]
    );
}

#[test]
fn faults_are_tokens() {
    assert_eq!(kinds("'a\n"), [Kind::Bad(Fault::OpenString)]);
    assert_eq!(kinds("'''a'"), [Kind::Bad(Fault::OpenString)]);
    assert_eq!(kinds("'a\\' &"), [Kind::Bad(Fault::OpenString)]);
    assert_eq!(kinds("'''a\\''' ''' # &\n &"), [Kind::Str, Kind::Bad(Fault::Char)]);
    assert_eq!(kinds("'\\"), [Kind::Bad(Fault::OpenString)]);
    assert_eq!(
        kinds("\u{0}\u{1F600}\u{E000}"),
        [Kind::Bad(Fault::Char), Kind::Bad(Fault::Char), Kind::Bad(Fault::Char)]
    );
}

/// A reader that gives one byte at a time.
struct Drops<'a>(&'a [u8]);

impl std::io::Read for Drops<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let (Some((first, rest)), Some(to)) = (self.0.split_first(), buffer.first_mut()) else {
            return Ok(0);
        };
        *to = *first;
        self.0 = rest;
        Ok(1)
    }
}

#[test]
fn a_stream_has_the_tokens_of_the_text() {
    let text =
        "a.b.c x:a....b. 1.5e+3 'é\\u00e9'''''a' b''' <http://a/\\u00e9> _:b.c.. @en--rtl ^^ ?é) # c\n>>";
    let mut reader = Drops(text.as_bytes());
    let mut lexer = Lexer::new(Window::stream(&mut reader, 1 << 20, 1 << 20));
    let mut whole = Lexer::new(Window::whole(text, usize::MAX));
    loop {
        let token = lexer.next();
        assert_eq!(token, whole.next());
        assert_eq!(lexer.text(token.span), &text[token.span.start..token.span.end]);
        if token.kind == Kind::End {
            break;
        }
    }
    let mut reader = Drops(b"a \xC3");
    let mut lexer = Lexer::new(Window::stream(&mut reader, 1 << 20, 1 << 20));
    assert_eq!([lexer.next().kind, lexer.next().kind], [Kind::Word, Kind::Bad(Fault::Encoding)]);
    let long = "x".repeat(200_000);
    let mut reader = long.as_bytes();
    let mut lexer = Lexer::new(Window::stream(&mut reader, 100_000, 1 << 20));
    assert_eq!(lexer.next().kind, Kind::Bad(Fault::LongToken));
}
