//! The rule: what a client may take of a table.

/// What has no room for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The table.
    Table,
    /// The client's share of it: others have room.
    Share,
}

/// Whether a client that has `held` of a table's places may take `more`, if all clients together have `taken` of `max`.
///
/// # Errors
/// What is full.
pub fn has_room(held: u64, taken: u64, more: u64, max: u64) -> Result<(), Full> {
    let (with_it, all) = (held.saturating_add(more), taken.saturating_add(more));
    if all > max {
        return Err(Full::Table);
    }
    match all > max - max / 4 && with_it > max / 4 {
        true => Err(Full::Share),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_share_bites_under_pressure_only() {
        assert_eq!(has_room(74, 74, 1, 100), Ok(()));
        assert_eq!(has_room(75, 75, 1, 100), Err(Full::Share));
        assert_eq!(has_room(24, 99, 1, 100), Ok(()));
        assert_eq!(has_room(0, 100, 1, 100), Err(Full::Table));
        assert_eq!(has_room(2, 2, 1, 3), Ok(()), "a small table has no quarters");
    }

    proptest! {
        /// Whoever has taken whatever before, one client leaves the last quarter to the others.
        #[test]
        fn one_client_never_has_all(max in 4_u64..1_000, steps in prop::collection::vec(1_u64..50, 0..200)) {
            let mut held = 0;
            for more in steps {
                held += has_room(held, held, more, max).map_or(0, |()| more);
            }
            prop_assert!(held <= max - max / 4);
            prop_assert!(has_room(0, held, 1, max).is_ok());
        }
    }
}
