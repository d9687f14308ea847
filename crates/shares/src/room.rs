//! The rule: what a client may take of a table.

/// What has no room for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The table.
    Table,
    /// The client's share of it: others have room.
    Share,
}

/// Whether a client that has `held` of a table's places may take `more`, if all clients together have `taken` of `max`. `None`: it
/// has no share, as a proxy that many clients stand behind.
///
/// # Errors
/// What is full.
pub fn has_room(held: Option<u64>, taken: u64, more: u64, max: u64) -> Result<(), Full> {
    let all = taken.saturating_add(more);
    if all > max {
        return Err(Full::Table);
    }
    match held {
        Some(held) if all > max - max / 4 && held.saturating_add(more) > max / 4 => Err(Full::Share),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_share_bites_under_pressure_only() {
        assert_eq!(has_room(Some(74), 74, 1, 100), Ok(()));
        assert_eq!(has_room(Some(75), 75, 1, 100), Err(Full::Share));
        assert_eq!(has_room(Some(24), 99, 1, 100), Ok(()));
        assert_eq!(has_room(Some(0), 100, 1, 100), Err(Full::Table));
        assert_eq!(has_room(None, 75, 25, 100), Ok(()));
        assert_eq!(has_room(Some(2), 2, 1, 3), Ok(()), "a small table has no quarters");
    }

    proptest! {
        /// One client leaves the last quarter to the others, in whatever steps it takes places.
        #[test]
        fn one_client_never_has_all(max in 4_u64..1_000, steps in prop::collection::vec(1_u64..50, 0..200)) {
            let mut held = 0;
            for more in steps {
                held += has_room(Some(held), held, more, max).map_or(0, |()| more);
            }
            prop_assert!(held <= max - max / 4);
            prop_assert!(has_room(Some(0), held, 1, max).is_ok());
        }
    }
}
