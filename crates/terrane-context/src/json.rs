//! JSON as far as the header of a model has it: objects, lists, texts and whole numbers.
//!
//! A library reads every other number too, which alone would be a twentieth of the decoder for browsers.

/// How deep values may lie in others.
const MAX_DEPTH: usize = 8;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Json {
    Text(String),
    Number(u64),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Json {
    /// The value that a text is; `None` where it is none, or one that has no place in a header.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let mut reader = Reader { rest: text };
        let value = reader.value(MAX_DEPTH)?;
        reader.space();
        reader.rest.is_empty().then_some(value)
    }

    pub(crate) fn object(&self) -> Option<&[(String, Self)]> {
        match self {
            Self::Object(entries) => Some(entries),
            _ => None,
        }
    }

    /// What an object has under a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let mut entries = self.object()?.iter();
        let (_, value) = entries.find(|(name, _)| name == key)?;
        Some(value)
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn number(&self) -> Option<usize> {
        match self {
            Self::Number(number) => usize::try_from(*number).ok(),
            _ => None,
        }
    }

    /// The whole numbers of a list.
    pub(crate) fn numbers(&self) -> Option<Vec<usize>> {
        match self {
            Self::List(values) => values.iter().map(Self::number).collect(),
            _ => None,
        }
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// Takes a sign where it is the next.
    fn sign(&mut self, sign: u8) -> Option<()> {
        self.space();
        (self.next()? == sign).then_some(())
    }

    /// Takes values up to the closing sign.
    fn all<T>(&mut self, close: u8, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut found = Vec::new();
        self.space();
        if self.rest.first() == Some(&close) {
            self.rest = &self.rest[1..];
            return Some(found);
        }
        loop {
            found.push(one(self)?);
            self.space();
            match self.next()? {
                b',' => {}
                sign if sign == close => return Some(found),
                _ => return None,
            }
        }
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        let depth = depth.checked_sub(1)?;
        self.space();
        match self.rest.first()? {
            b'"' => self.text().map(Json::Text),
            b'{' => {
                self.next();
                let entry = |reader: &mut Self| {
                    reader.space();
                    let name = reader.text()?;
                    reader.sign(b':')?;
                    Some((name, reader.value(depth)?))
                };
                self.all(b'}', entry).map(Json::Object)
            }
            b'[' => {
                self.next();
                self.all(b']', |reader| reader.value(depth)).map(Json::List)
            }
            _ => self.number().map(Json::Number),
        }
    }

    fn number(&mut self) -> Option<u64> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit());
        let (digits, rest) = self.rest.split_at(digits.count());
        self.rest = rest;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    fn text(&mut self) -> Option<String> {
        self.sign(b'"')?;
        let mut bytes = Vec::new();
        loop {
            match self.next()? {
                b'"' => return String::from_utf8(bytes).ok(),
                b'\\' => {
                    let letter = match self.next()? {
                        sign @ (b'"' | b'\\' | b'/') => sign.into(),
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'n' => '\n',
                        b'r' => '\r',
                        b't' => '\t',
                        b'u' => self.code()?,
                        _ => return None,
                    };
                    bytes.extend(letter.encode_utf8(&mut [0; 4]).bytes());
                }
                byte => bytes.push(byte),
            }
        }
    }

    /// The letter of four digits; halves of a letter, which no writer of models writes, are refused.
    fn code(&mut self) -> Option<char> {
        let (digits, rest) = self.rest.split_at_checked(4)?;
        self.rest = rest;
        let digits = std::str::from_utf8(digits).ok()?;
        char::from_u32(u32::from_str_radix(digits, 16).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_library_writes_is_read() {
        let text = r#" {"a":{"b\"\\\n\u00e9":"{\"x\":1}"}, "c" : [1, 22,18446744073709551615] ,"d":[],"e":{}}  "#;
        let value = Json::read(text.as_bytes()).unwrap();
        let inner = value.get("a").unwrap().get("b\"\\\né").unwrap();
        assert_eq!(inner.text(), Some("{\"x\":1}"));
        let inner = Json::read(inner.text().unwrap().as_bytes()).unwrap();
        assert_eq!(inner.get("x").unwrap().number(), Some(1));
        assert_eq!(
            value.get("c").unwrap().numbers(),
            Some(vec![1, 22, usize::MAX])
        );
        assert_eq!(value.get("d").unwrap().numbers(), Some(vec![]));
        assert_eq!(value.get("f"), None);
    }

    #[test]
    fn everything_else_is_refused() {
        let deep = "[".repeat(5000);
        for text in [
            "",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "[1,]",
            "[1 2]",
            "1.5",
            "-1",
            "true",
            "\"a",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"\\u12",
            "{} {}",
            "99999999999999999999",
            &deep,
        ] {
            assert_eq!(Json::read(text.as_bytes()), None, "{text:.20}");
        }
    }
}
