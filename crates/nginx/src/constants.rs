//! Variables that `set` gives one value, put in where they stand.

use std::collections::HashMap;

use crate::tree::Directive;

/// Puts the values of constants into a server: variables that one `set` of its block, and no other, gives a value without
/// variables.
pub(crate) fn put_in(server: &mut Directive) {
    let mut counts = HashMap::new();
    count(&server.block, &mut counts);
    let mut values: Vec<(String, String)> = Vec::new();
    for set in server.block.iter().filter(|directive| directive.name == "set") {
        let value = replaced(set.argument(1), &values);
        if counts.get(set.argument(0)) == Some(&1) && !value.contains('$') && set.argument(0).starts_with('$')
        {
            values.push((set.argument(0)[1..].to_owned(), value));
        }
    }
    if !values.is_empty() {
        let is_constant = |directive: &Directive| {
            directive.name == "set"
                && values.iter().any(|(name, _)| directive.argument(0).strip_prefix('$') == Some(name))
        };
        server.block.retain(|directive| !is_constant(directive));
        replace(&mut server.block, &values);
    }
}

fn count<'t>(block: &'t [Directive], counts: &mut HashMap<&'t str, usize>) {
    for directive in block {
        if directive.name == "set" {
            *counts.entry(directive.argument(0)).or_default() += 1;
        }
        count(&directive.block, counts);
    }
}

fn replace(block: &mut [Directive], values: &[(String, String)]) {
    for directive in block {
        for argument in &mut directive.arguments {
            *argument = replaced(argument, values);
        }
        replace(&mut directive.block, values);
    }
}

fn replaced(text: &str, values: &[(String, String)]) -> String {
    let (mut rest, mut out) = (text, String::new());
    while let Some((before, behind)) = rest.split_once('$') {
        out.push_str(before);
        let inner = behind.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let end = behind.find(|character: char| !character.is_ascii_alphanumeric() && character != '_');
        let (name, after) = inner.unwrap_or_else(|| behind.split_at(end.unwrap_or(behind.len())));
        match values.iter().find(|(known, _)| known == name) {
            Some((_, value)) => out.push_str(value),
            None => out.extend(["$", &behind[..behind.len() - after.len()]]),
        }
        rest = after;
    }
    out + rest
}
