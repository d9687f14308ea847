//! What an operator wants of a node, written to etcd so that all front-ends follow.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::Builder;

use crate::etcd::Api;
use crate::inputs::Input;
use crate::messages::Order;
use crate::record::{Directive, is_name};
use crate::view::ORDERS;

/// Writes an order, in a thread of its own.
///
/// # Errors
/// No thread can be started.
pub(crate) fn write(api: Arc<Api>, ticket: u64, order: Order, inputs: Sender<Input>) -> io::Result<()> {
    Builder::new().name("order".into()).spawn(move || {
        let _ = inputs.send(Input::Ordered(ticket, try_write(&api, &order)));
    })?;
    Ok(())
}

fn try_write(api: &Api, order: &Order) -> Result<(), String> {
    if !is_name(&order.name) {
        return Err(format!("`{}` is not the name of a node", order.name));
    }
    let key = format!("{ORDERS}/{}", order.name);
    for _ in 0..TRIES {
        let known = api.get(&key).map_err(|failure| failure.to_string())?;
        let mod_revision = known.as_ref().map_or(0, |entry| entry.mod_revision);
        // What another version has written is replaced.
        let mut directive = known.and_then(|entry| Directive::parse(&entry.value).ok()).unwrap_or_default();
        directive.drained = order.drained.unwrap_or(directive.drained);
        directive.weight = order.weight.or(directive.weight);
        let value = directive.to_value();
        if value.is_none() && mod_revision == 0 {
            return Ok(());
        }
        let replaced = api.replace(&key, mod_revision, value.as_deref());
        if replaced.map_err(|failure| failure.to_string())?.is_some() {
            return Ok(());
        }
    }
    Err("others change it at the same time".into())
}

/// Operators at several front-ends may order at the same moment.
const TRIES: usize = 5;
