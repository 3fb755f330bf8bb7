//! Errors as people read them, and text from files as a terminal may show it.

use std::borrow::Cow;
use std::error::Error;

/// An error and its causes in one sentence, each once: some errors quote their causes, others leave them to whoever
/// prints them.
pub fn sentence(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        if !text.contains(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        cause = error.source();
    }
    text
}

/// Whether a character can change what a terminal shows of others: controls, and what turns the direction of writing.
fn is_control(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_escaped(letter) {
            // As JSON writes it, so that JSON still means the same.
            out.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            out.push(letter);
        }
    }
    out.into()
}

/// A text from a file on one line, with its control characters shown instead of obeyed.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_control)
}

/// Lines of text with other control characters shown instead of obeyed.
pub fn plain_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| {
        !matches!(letter, '\n' | '\t') && is_control(letter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_json_means_the_same() {
        let name = "a\u{1b}[2J\u{7f}\u{9b}\u{202e}\u{2066}é\n";
        assert_eq!(
            one_line(name),
            "a\\u001b[2J\\u007f\\u009b\\u202e\\u2066é\\u000a"
        );
        assert_eq!(plain_lines("a\tb\n"), "a\tb\n");
        let json = serde_json::to_string(name).unwrap();
        let back: String = serde_json::from_str(&plain_lines(&json)).unwrap();
        assert_eq!(back, name);
        assert!(!plain_lines(&json).contains(is_control));
    }

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Failed {
        text: String,
        #[source]
        cause: std::io::Error,
    }

    #[test]
    fn a_cause_is_said_once() {
        let cause = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let quoted = format!("a.tif: cannot be read: {}; look for it", cause());
        let error = Failed {
            text: quoted.clone(),
            cause: cause(),
        };
        assert_eq!(sentence(&error), quoted);
        let error = Failed {
            text: "a.trn cannot be opened".into(),
            cause: cause(),
        };
        assert_eq!(
            sentence(&error),
            format!("a.trn cannot be opened: {}", cause())
        );
    }
}
