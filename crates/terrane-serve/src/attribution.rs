//! The attribution of a map: who made its data.

/// A plain text as HTML, which is how map clients read an attribution: nothing in it becomes a tag.
pub(crate) fn html(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            letter => html.push(letter),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_no_html() {
        assert_eq!(html("© Survey 2024"), "© Survey 2024");
        assert_eq!(
            html("A & B <img src=x onerror=\"f('x')\">"),
            "A &amp; B &lt;img src=x onerror=&quot;f(&#39;x&#39;)&quot;&gt;"
        );
    }
}
