//! A value that its owner gives away by value for a while.

use std::ops::{Deref, DerefMut};

/// Moves its value out and back, where a borrow would have to outlive its scope: a coroutine may be suspended while it
/// holds the value.
#[derive(Debug)]
pub(crate) struct Takeable<T>(Option<Box<T>>);

impl<T> Takeable<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(Box::new(value)))
    }

    /// Gives the value away.
    pub(crate) fn take(&mut self) -> Box<T> {
        self.0.take().expect(AWAY)
    }

    /// Takes it back.
    pub(crate) fn put_back(&mut self, value: Box<T>) {
        self.0 = Some(value);
    }
}

impl<T> Deref for Takeable<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().expect(AWAY)
    }
}

impl<T> DerefMut for Takeable<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_deref_mut().expect(AWAY)
    }
}

const AWAY: &str = "used only while it is not taken";
