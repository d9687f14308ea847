//! Variables that `set` gives one value, put in where they stand.

use std::collections::HashMap;

use baton_http::{LoneDollar, TextPart, text_of_parts, text_parts};

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
    name_itself(server);
    if !values.is_empty() {
        let is_constant = |directive: &Directive| {
            directive.name == "set"
                && values.iter().any(|(name, _)| directive.argument(0).strip_prefix('$') == Some(name))
        };
        server.block.retain(|directive| !is_constant(directive));
        replace(&mut server.block, &values);
    }
}

/// Puts the name of a server, which is its first one, into its redirections.
fn name_itself(server: &mut Directive) {
    let names = server.block.iter().find(|directive| directive.name == "server_name");
    let name = names.map_or("", |names| names.argument(0)).to_owned();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    if name.contains(|first: char| first.is_ascii_alphanumeric()) && name.bytes().all(is_plain) {
        let values = [("server_name".to_owned(), name)];
        let redirections = |directive: &&mut Directive| matches!(&*directive.name, "return" | "rewrite");
        for directive in server.block.iter_mut().filter(redirections) {
            replace(std::slice::from_mut(directive), &values);
        }
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
    let value = |name: &str| values.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    // A regular expression may have a `$` for itself.
    let parts = text_parts(text, |name| Ok::<_, LoneDollar>(name.to_owned()));
    let Ok(parts) = parts else { return text.to_owned() };
    let parts: Vec<_> = parts
        .into_iter()
        .map(|part| match part {
            TextPart::Variable(name) => match value(&name) {
                Some(value) => TextPart::Text(value.clone()),
                None => TextPart::Variable(name),
            },
            text @ TextPart::Text(_) => text,
        })
        .collect();
    text_of_parts(&parts)
}
