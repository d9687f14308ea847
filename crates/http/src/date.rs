//! Dates (RFC 9110 section 5.6.7).

use httpdate::HttpDate;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A second, with its Date field value made once: a server stamps every answer of that second with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Seconds since 1970.
    pub unix_seconds: u64,
    /// The IMF-fixdate, `Sun, 06 Nov 1994 08:49:37 GMT`: always this long.
    pub date: [u8; Self::DATE_LEN],
}

impl Stamp {
    /// Bytes of an IMF-fixdate.
    pub const DATE_LEN: usize = 29;

    /// The stamp of a second; from the year 10000 on the date stays at the last second before it, the last that fits
    /// the format.
    pub fn at(unix_seconds: u64) -> Self {
        let time = UNIX_EPOCH + Duration::from_secs(unix_seconds.min(LAST_SECOND));
        let mut date = [b' '; Self::DATE_LEN];
        let mut rest: &mut [u8] = &mut date;
        write!(rest, "{}", HttpDate::from(time)).expect("an IMF-fixdate has 29 bytes");
        Self { unix_seconds, date }
    }
}

impl AsRef<[u8]> for Stamp {
    fn as_ref(&self) -> &[u8] {
        &self.date
    }
}

/// Seconds since 1970 of a date in any of the three formats: IMF-fixdate, that of RFC 850 (two-digit years from 70 on
/// are in the 20th century) and that of `asctime`. `None` for anything else, for dates before 1970, for days that do
/// not exist, and for a wrong weekday.
pub fn parse_date(text: &[u8]) -> Option<u64> {
    let date: HttpDate = std::str::from_utf8(text).ok()?.parse().ok()?;
    SystemTime::from(date).duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// 31 December 9999, 23:59:59.
const LAST_SECOND: u64 = 253_402_300_799;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_three_formats_say_the_same_second() {
        for text in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(parse_date(text.as_bytes()), Some(784_111_777), "{text}");
        }
        assert_eq!(parse_date(b"Tuesday, 01-Jan-69 00:00:00 GMT"), Some(3_124_224_000), "2069");
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "0",
            "784111777",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "1994-11-06T08:49:37Z",
            "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse_date(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_clock_beyond_the_format_is_stamped_with_the_last_date() {
        let last = Stamp::at(LAST_SECOND).date;
        assert_eq!(&last, b"Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(Stamp::at(u64::MAX).date, last);
    }

    proptest! {
        #[test]
        fn every_second_survives_the_way_out_and_back(second in 0..=LAST_SECOND) {
            prop_assert_eq!(parse_date(&Stamp::at(second).date), Some(second));
        }
    }
}
