//! Numbers of a paper beside ours: what each is, how far they are apart, where ours comes from, and why they differ.

use askama::Template;

use crate::number::{MISSING, fixed};
use crate::table::{Cell, Column, Table};
use crate::text::{Prose, escape_markdown, prose_markdown};

/// How ours stands to theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Within the tolerance that the page states.
    Agrees,
    /// Beyond it.
    Differs,
    /// There is none of ours.
    Missing,
}

impl Verdict {
    /// As programs read it, and as the page names its colour.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Missing => "not measured",
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Missing => "missing",
        }
    }
}

/// How a number is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As it is.
    Value,
    /// As it is, and the difference also as a share of the paper's.
    Share,
    /// With its sign: it is a difference itself.
    Change,
}

/// From here on a share in percent needs no digits.
const WHOLE_PERCENT: f64 = 19.5;
/// What stands at the head of rows that have no source, after others of their subject that have one.
const NO_SOURCE: &str = "none of ours";

/// One number of the paper beside ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// What it is a number of, such as a method; equal neighbours are shown once.
    pub subject: String,
    /// What was measured.
    pub measure: String,
    /// In what; empty for a count and for words.
    pub unit: String,
    /// Digits after the point.
    pub digits: usize,
    /// What the paper has.
    pub paper: Cell,
    /// What we have.
    pub ours: Cell,
    /// How both are shown.
    pub form: Form,
    /// Where ours comes from; `backticks` set code. Equal neighbours are shown once.
    pub source: String,
    /// Why they differ, or why there is none; `backticks` set code. Equal neighbours are shown once.
    pub why: String,
    /// How they stand to each other.
    pub verdict: Verdict,
}

impl Compared {
    /// Ours less the paper's.
    pub fn difference(&self) -> Option<f64> {
        Some(number(&self.ours)? - number(&self.paper)?)
    }

    /// Its name with its unit.
    fn named(&self) -> String {
        match self.unit.as_str() {
            "" => self.measure.clone(),
            unit => format!("{}, {unit}", self.measure),
        }
    }

    fn shown(&self, cell: &Cell) -> String {
        match cell {
            Cell::Missing => self.verdict.name().to_owned(),
            Cell::Number(value) if self.form == Form::Change => signed(*value, self.digits),
            other => other.shown(self.digits),
        }
    }

    /// Its source; a row without one must not seem to have that of the rows above, unless it is the first of its subject.
    fn shown_source(&self, is_subject: bool) -> &str {
        match self.source.as_str() {
            "" if !is_subject => NO_SOURCE,
            source => source,
        }
    }

    /// The difference with its sign, and as a share where that says more.
    fn shown_difference(&self) -> String {
        let Some(difference) = self.difference() else {
            return MISSING.to_owned();
        };
        let mut text = signed(difference, self.digits);
        let paper = number(&self.paper).unwrap_or(0.0);
        let is_seen = text.starts_with(['+', '−']);
        if self.form == Form::Share && paper > 0.0 && is_seen {
            let share = 100.0 * difference / paper;
            let share = signed(share, usize::from(share.abs() < WHOLE_PERCENT));
            // A share that is nothing when it is rounded says nothing.
            if share.starts_with(['+', '−']) {
                text.push_str(&format!(" ({share} %)"));
            }
        }
        text
    }
}

/// The value of a cell that is a number.
fn number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Number(value) => Some(*value),
        Cell::Count(count) => Some(*count as f64),
        Cell::Text(_) | Cell::Missing => None,
    }
}

/// A number with its sign, and without one where nothing of it is left.
fn signed(value: f64, digits: usize) -> String {
    let half = 0.5 * 10_f64.powi(-(digits as i32));
    let text = fixed(if value.abs() < half { 0.0 } else { value.abs() }, digits);
    match value {
        value if value >= half => format!("+{text}"),
        value if value <= -half => format!("−{text}"),
        _ => text,
    }
}

/// Prose in a cell, which a bar would end, within code as well.
fn cell_markdown(text: &str) -> String {
    let mut cell = String::new();
    for character in prose_markdown(text).chars() {
        if character == '|' && !cell.ends_with('\\') {
            cell.push('\\');
        }
        cell.push(character);
    }
    cell
}

/// The numbers of one table or figure of the paper beside ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Stem of its name on the page.
    pub name: String,
    /// Where in the paper it is.
    pub place: String,
    /// How it was measured; `backticks` set code.
    pub note: String,
    /// The numbers.
    pub rows: Vec<Compared>,
}

/// How many rows from here on show one cell for all of them, and nothing for those that an earlier one covers.
fn spans(rows: &[Compared], of: impl Fn(&Compared) -> [&str; 3]) -> Vec<usize> {
    let mut spans = vec![0; rows.len()];
    let mut first = 0;
    for (index, row) in rows.iter().enumerate() {
        if index == 0 || of(row) != of(&rows[first]) {
            first = index;
        }
        spans[first] += 1;
    }
    spans
}

impl Comparison {
    /// The subject's, the source's within it, and the reason's within that.
    fn spans(&self) -> [Vec<usize>; 3] {
        [
            spans(&self.rows, |row| [&row.subject, "", ""]),
            spans(&self.rows, |row| [&row.subject, &row.source, ""]),
            spans(&self.rows, |row| [&row.subject, &row.source, &row.why]),
        ]
    }

    pub(crate) fn markdown(&self) -> String {
        let mut out = String::from(
            "| of what | what | paper | ours | difference | by | why |\n| --- | --- | ---: | ---: | ---: | --- | --- |\n",
        );
        let [subjects, sources, reasons] = self.spans();
        for (index, row) in self.rows.iter().enumerate() {
            let once = |spans: &[usize], text: String| {
                if spans[index] > 0 {
                    text
                } else {
                    String::new()
                }
            };
            let cells = [
                once(&subjects, escape_markdown(&row.subject)),
                escape_markdown(&row.named()),
                escape_markdown(&row.shown(&row.paper)),
                escape_markdown(&row.shown(&row.ours)),
                row.shown_difference(),
                once(
                    &sources,
                    cell_markdown(row.shown_source(subjects[index] > 0)),
                ),
                once(&reasons, cell_markdown(&row.why)),
            ];
            out.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        if !self.note.is_empty() {
            out.push_str(&format!("\n{}\n", prose_markdown(&self.note)));
        }
        out
    }

    pub(crate) fn html(&self) -> String {
        let [subjects, sources, reasons] = self.spans();
        let starts = (0..self.rows.len()).filter(|&index| sources[index] > 0);
        let groups = starts.map(|start| {
            let is_subject = subjects[start] > 0;
            let row = |index: usize| HtmlRow {
                row: &self.rows[index],
                reason: (reasons[index] > 0).then_some(reasons[index]),
            };
            let first = &self.rows[start];
            HtmlGroup {
                subject: is_subject.then_some(&first.subject),
                source: first.shown_source(is_subject),
                rows: (start..start + sources[start]).map(row).collect(),
            }
        });
        let template = ComparisonTemplate {
            comparison: self,
            groups: groups.collect(),
        };
        template.render().expect("memory takes every comparison")
    }
}

#[derive(Template)]
#[template(path = "comparison.html")]
struct ComparisonTemplate<'a> {
    comparison: &'a Comparison,
    groups: Vec<HtmlGroup<'a>>,
}

/// Rows of one subject and source below a line with both.
struct HtmlGroup<'a> {
    /// Their subject, unless the group before has it.
    subject: Option<&'a String>,
    source: &'a str,
    rows: Vec<HtmlRow<'a>>,
}

/// A row with what is shown of it.
struct HtmlRow<'a> {
    row: &'a Compared,
    /// How many rows its reason covers; none where an earlier row's covers this one.
    reason: Option<usize>,
}

/// Every number of some comparisons as one table, a row for each.
pub(crate) fn numbers<'a>(
    name: &str,
    comparisons: impl Iterator<Item = &'a Comparison>,
) -> Option<Table> {
    let columns = [
        "place",
        "subject",
        "measure",
        "unit",
        "paper",
        "ours",
        "difference",
        "verdict",
        "source",
        "why",
    ];
    let columns = columns.map(|key| Column::new(key, key, 4)).to_vec();
    let mut table = Table::new(name, name, "", columns);
    for comparison in comparisons {
        for row in &comparison.rows {
            table.row(vec![
                comparison.place.as_str().into(),
                row.subject.as_str().into(),
                row.measure.as_str().into(),
                row.unit.as_str().into(),
                row.paper.clone(),
                row.ours.clone(),
                row.difference().into(),
                row.verdict.name().into(),
                row.source.replace('`', "").into(),
                row.why.replace('`', "").into(),
            ]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(subject: &str, paper: f64, ours: impl Into<Cell>) -> Compared {
        let ours = ours.into();
        Compared {
            subject: subject.into(),
            measure: "PSNR".into(),
            unit: "dB".into(),
            digits: 2,
            paper: paper.into(),
            verdict: if ours == Cell::Missing {
                Verdict::Missing
            } else {
                Verdict::Differs
            },
            ours,
            form: Form::Value,
            source: "`a/b`".into(),
            why: "other <data>".into(),
        }
    }

    fn comparison() -> Comparison {
        Comparison {
            name: "one".into(),
            place: "Table 1".into(),
            note: "Means.".into(),
            rows: vec![
                row("A", 51.69, 51.04),
                row("A", 48.86, Cell::Missing),
                row("B", 1.0, 1.001),
            ],
        }
    }

    #[test]
    fn differences_have_a_sign_and_nothing_has_none() {
        let rows = comparison().rows;
        assert_eq!(rows[0].shown_difference(), "−0.65");
        assert_eq!(rows[1].shown_difference(), "–");
        assert_eq!(rows[2].shown_difference(), "0.00");
        let mut metres = row("A", 0.05, 0.06);
        (metres.form, metres.digits) = (Form::Share, 3);
        assert_eq!(metres.shown_difference(), "+0.010 (+20 %)");
        metres.ours = 0.0577.into();
        assert_eq!(metres.shown_difference(), "+0.008 (+15.4 %)");
        // No share stands where nothing is left of it.
        (metres.paper, metres.ours, metres.digits) = (1234.0.into(), 1234.1.into(), 1);
        assert_eq!(metres.shown_difference(), "+0.1");
        let mut change = row("A", 4.9, -0.3);
        change.form = Form::Change;
        assert_eq!(change.shown(&change.paper), "+4.90");
        assert_eq!(change.shown(&change.ours), "−0.30");
        assert_eq!(change.shown_difference(), "−5.20");
    }

    #[test]
    fn what_neighbours_share_is_shown_once() {
        let html = comparison().html();
        assert_eq!(html.matches("rowspan=\"2\"").count(), 1, "{html}");
        assert_eq!(html.matches("<code>a/b</code>").count(), 2, "{html}");
        assert_eq!(html.matches("other &lt;data&gt;").count(), 2);
        assert!(
            html.contains("class=\"missing\">not measured</td>"),
            "{html}"
        );
        let markdown = comparison().markdown();
        let lines: Vec<&str> = markdown.lines().collect();
        assert_eq!(
            lines[2],
            "| A | PSNR, dB | 51.69 | 51.04 | −0.65 | `a/b` | other \\<data\\> |"
        );
        assert_eq!(lines[3], "|  | PSNR, dB | 48.86 | not measured | – |  |  |");
    }

    #[test]
    fn rows_without_a_source_are_not_those_of_the_source_above() {
        let mut rows = vec![row("A", 1.0, 2.0), row("A", 1.0, Cell::Missing)];
        rows.push(row("B", 1.0, Cell::Missing));
        rows[1].source.clear();
        rows[2].source.clear();
        let comparison = Comparison {
            rows,
            ..comparison()
        };
        let html = comparison.html();
        assert_eq!(html.matches("<tbody>").count(), 3, "{html}");
        assert_eq!(html.matches("scope=\"rowgroup\"").count(), 3, "{html}");
        assert_eq!(html.matches(NO_SOURCE).count(), 1, "{html}");
        assert_eq!(html.matches("<b>").count(), 2, "{html}");
    }

    #[test]
    fn a_bar_does_not_end_a_cell() {
        let mut rows = vec![row("A", 1.0, 2.0)];
        rows[0].source = "`a|b`, |ρ|".into();
        let comparison = Comparison {
            rows,
            ..comparison()
        };
        let markdown = comparison.markdown();
        assert!(markdown.contains("`a\\|b`, \\|ρ\\|"), "{markdown}");
    }

    #[test]
    fn programs_get_a_row_for_each_number() {
        let table = numbers("paper", [comparison()].iter()).unwrap();
        let csv = table.csv();
        assert_eq!(csv.lines().count(), 4);
        assert_eq!(
            csv.lines().nth(2).unwrap(),
            "Table 1,A,PSNR,dB,48.86,,,not measured,a/b,other <data>"
        );
        assert!(numbers("paper", std::iter::empty()).is_none());
    }
}
