//! Sweeps: a table of a file that stands for several, one for each combination of values.
//!
//! `sweep.processes = [1, 5]` makes two tables; `"{processes}"` in them is the number, and `"{processes} processes"` a text with
//! it. Values are put into the parsed file, so each table is checked as strictly as one without a sweep, and a mistake in it
//! has its line.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::likely;
use super::scalar::Scalar;

/// The parameters of a variant, by name.
pub(crate) type Parameters = BTreeMap<String, Scalar>;

/// Something wrong at these bytes.
pub(super) type Complaint = (Range<usize>, String);

/// The variants of a table, the last parameter changing first.
pub(super) fn expand<'a>(
    mut table: Spanned<DeTable<'a>>,
) -> Result<Vec<(Parameters, Spanned<DeTable<'a>>)>, Complaint> {
    let mut choices: Vec<Vec<(String, Spanned<DeValue<'a>>)>> = vec![Vec::new()];
    if let Some(sweep) = table.get_mut().remove("sweep") {
        let span = sweep.span();
        let DeValue::Table(sweep) = sweep.into_inner() else {
            return Err((span, "a sweep has names with values: sweep.processes = [1, 5]".to_owned()));
        };
        for (name, values) in sweep {
            let span = values.span();
            let DeValue::Array(values) = values.into_inner() else {
                return Err((span, format!("the values of {} are a list", name.get_ref())));
            };
            let so_far = std::mem::take(&mut choices);
            for choice in so_far {
                for value in values.iter() {
                    let more = (name.get_ref().clone().into_owned(), value.clone());
                    choices.push(choice.iter().cloned().chain([more]).collect());
                }
            }
        }
    }
    let one = |choice: Vec<(String, Spanned<DeValue<'a>>)>| {
        let mut variant = table.clone();
        let mut parameters = Parameters::new();
        for (name, value) in &choice {
            let scalar = Scalar::of(value.get_ref());
            let scalar = scalar.ok_or((value.span(), "a parameter is a number or a word".to_owned()))?;
            parameters.insert(name.clone(), scalar);
        }
        for (_, value) in variant.get_mut().iter_mut() {
            fill(value, &choice, &parameters)?;
        }
        Ok((parameters, variant))
    };
    choices.into_iter().map(one).collect()
}

fn fill<'a>(
    value: &mut Spanned<DeValue<'a>>,
    choice: &[(String, Spanned<DeValue<'a>>)],
    parameters: &Parameters,
) -> Result<(), Complaint> {
    let span = value.span();
    match value.get_mut() {
        DeValue::Table(table) => table.iter_mut().try_for_each(|(_, item)| fill(item, choice, parameters)),
        DeValue::Array(items) => items.iter_mut().try_for_each(|item| fill(item, choice, parameters)),
        DeValue::String(text) => {
            let whole = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
            if let Some((_, chosen)) = choice.iter().find(|(name, _)| Some(&**name) == whole) {
                *value.get_mut() = chosen.get_ref().clone();
                return Ok(());
            }
            let filled = replace_words(text, |word| match parameters.get(word) {
                Some(value) => Ok(Some(value.0.clone())),
                None if PLACES.contains(&word) => Ok(None),
                None => {
                    let known = parameters.keys().map(String::as_str).chain(PLACES);
                    let meant = likely(word, known).map(|word| format!(": did you mean `{{{word}}}`?"));
                    Err(format!("`{{{word}}}` is no parameter of this table{}", meant.unwrap_or_default()))
                }
            });
            *text = filled.map_err(|what| (span, what))?.into();
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Replaces `{word}`, for which the function has another text. Other braces stay.
pub(crate) fn replace_words<E>(
    text: &str,
    mut other: impl FnMut(&str) -> Result<Option<String>, E>,
) -> Result<String, E> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find('{') {
        let (before, from) = rest.split_at(begin);
        filled.push_str(before);
        let end = from.find('}').filter(|end| {
            *end > 1 && from[1..*end].bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        });
        let Some(end) = end else {
            filled.push('{');
            rest = &from[1..];
            continue;
        };
        match other(&from[1..end])? {
            Some(text) => filled.push_str(&text),
            None => filled.push_str(&from[..=end]),
        }
        rest = &from[end + 1..];
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Words that are known when a contender starts: the folders of the site, of all that runs, of what was built with the server,
/// and of our `libfcgi` under the distribution's name; and the keys that members of a cluster share.
pub(crate) const PLACES: [&str; 7] =
    ["root", "folder", "build", "tools", "drop_in", "cluster_key", "documents_key"];

#[cfg(test)]
mod tests {
    use super::*;

    fn variants(text: &str) -> Result<Vec<(Parameters, String)>, String> {
        let table = DeTable::parse(text).unwrap();
        let shown = |(parameters, table): (Parameters, Spanned<DeTable<'_>>)| {
            let name = table.get_ref().get("name").map(|name| format!("{:?}", name.get_ref()));
            (parameters, name.unwrap_or_default())
        };
        expand(table).map(|all| all.into_iter().map(shown).collect()).map_err(|(_, what)| what)
    }

    #[test]
    fn each_combination_is_a_table_and_a_whole_word_keeps_its_type() {
        let all = variants("name = '{a} by {b}'\nsweep.a = [1, 2]\nsweep.b = ['x', 'y']").unwrap();
        let names: Vec<_> = all.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(all.len(), 4);
        assert!(names[0].contains("1 by x") && names[1].contains("1 by y") && names[3].contains("2 by y"));
        let all = variants("name = '{a}'\nsweep.a = [7]").unwrap();
        assert!(all[0].1.contains("Integer"), "{all:?}");
        assert_eq!(all[0].0["a"].number(), Some(7.0));
    }

    #[test]
    fn an_unknown_word_is_a_mistake_with_a_proposal() {
        let why = variants("name = '{proceses}'\nsweep.processes = [1]").unwrap_err();
        assert!(why.contains("did you mean `{processes}`?"), "{why}");
        assert!(variants("name = 'file://{root}/ {\"json\": 1}'").is_ok());
        assert!(variants("sweep.a = 1").unwrap_err().contains("a list"));
    }
}
