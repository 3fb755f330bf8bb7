//! Addresses of files on web servers and in object stores: how they are told from paths, shown and read.

use std::path::Path;
use std::time::Duration;

/// How a file at an address is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteOptions {
    /// How long the other side may take for one read, tries again included. A read of many bytes may take longer as long
    /// as they come, a second for every 16 KiB.
    pub timeout: Duration,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
        }
    }
}

/// Whether a name is an address rather than a path.
pub(crate) fn is_address(name: &str) -> bool {
    name.split_once("://").is_some_and(|(scheme, _)| {
        scheme.len() > 1 && scheme.chars().all(|letter| letter.is_ascii_alphanumeric())
    })
}

/// An address as others may see it: without name and password, and without what stands after `?`, which may be a
/// signature. What is no address stays as it is.
pub fn public_address(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find(['/', '\\']).unwrap_or(rest.len()));
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let port = host.rsplit(']').next().and_then(|end| end.split_once(':'));
    if port.is_some_and(|(_, port)| !port.bytes().all(|byte| byte.is_ascii_digit())) {
        // A password with a slash looks like a host with a strange port.
        return format!("{scheme}://…");
    }
    format!("{scheme}://{host}{path}")
}

/// A path or an address as messages show it.
pub fn shown(path: &Path) -> String {
    match path.to_str() {
        Some(name) if is_address(name) => public_address(name),
        _ => path.display().to_string(),
    }
}

/// A text in which every address is as others may see it.
pub fn without_secrets(text: &str) -> String {
    text.split_inclusive(char::is_whitespace)
        .map(|word| {
            let end = word.trim_end().len();
            if word.contains("://") {
                public_address(&word[..end]) + &word[end..]
            } else {
                word.to_owned()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        for (address, expected) in [
            ("https://host/x.trn", "https://host/x.trn"),
            (
                "https://user:secret@host:8080/a/x.trn?X-Amz-Signature=secret#secret",
                "https://host:8080/a/x.trn",
            ),
            ("https://secret@host?secret", "https://host"),
            ("s3://key:sec@ret@bucket/x.trn", "s3://bucket/x.trn"),
            ("http://u:secret@[::1]:80/x.trn", "http://[::1]:80/x.trn"),
            ("https://host/a@2x.trn", "https://host/a@2x.trn"),
            ("https://user:sec/ret@host/x.trn", "https://…"),
            ("https://user:sec?ret@host/x.trn", "https://…"),
            ("https://user:sec#ret@host/x.trn", "https://…"),
            ("a/b?c@d.trn", "a/b?c@d.trn"),
        ] {
            assert_eq!(public_address(address), expected);
        }
        assert_eq!(shown(Path::new("https://u:p@h/x.trn")), "https://h/x.trn");
        assert_eq!(shown(Path::new("a@b?c.trn")), "a@b?c.trn");
    }

    #[test]
    fn a_text_keeps_all_but_the_secrets() {
        assert_eq!(
            without_secrets("Error GET http://u:secret@h/x?sig=secret in 3s\n - refused"),
            "Error GET http://h/x in 3s\n - refused"
        );
    }
}
