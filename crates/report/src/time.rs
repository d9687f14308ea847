//! Times as the logs and the status show them.

use std::time::SystemTime;

/// A time as in RFC 3339, in UTC, to the millisecond.
pub fn utc(at: SystemTime) -> String {
    let since_epoch = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    utc_bytes(since_epoch.as_millis() as u64).iter().map(|&byte| char::from(byte)).collect()
}

/// Milliseconds since 1970 as in RFC 3339, for a log line: it allocates nothing. Of a year, the last four digits.
pub fn utc_bytes(unix_ms: u64) -> [u8; 24] {
    let seconds = unix_ms / 1000;
    let (year, month, day) = civil(seconds / 86_400);
    let mut text = *b"0000-00-00T00:00:00.000Z";
    for (end, digits, mut value) in [
        (4, 4, year),
        (7, 2, month),
        (10, 2, day),
        (13, 2, seconds / 3600 % 24),
        (16, 2, seconds / 60 % 60),
        (19, 2, seconds % 60),
        (23, 3, unix_ms % 1000),
    ] {
        for digit in text[end - digits..end].iter_mut().rev() {
            *digit = b'0' + (value % 10) as u8;
            value /= 10;
        }
    }
    text
}

/// Year, month and day of the n-th day after 1 January 1970: H. Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", `civil_from_days`, for days that are not before it. Years begin in March, leap days end them.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_FROM_MARCH_OF_YEAR_0: u64 = 719_468;
    const DAYS_PER_ERA: u64 = 146_097;
    let days = days + DAYS_FROM_MARCH_OF_YEAR_0;
    let (era, day_of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn times_are_utc_with_leap_days() {
        assert_eq!(utc(at(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(utc(at(951_782_400)), "2000-02-29T00:00:00.000Z");
        assert_eq!(utc(at(1_709_251_199)), "2024-02-29T23:59:59.000Z");
        assert_eq!(utc(at(1_709_251_200)), "2024-03-01T00:00:00.000Z");
        assert_eq!(utc(at(4_107_542_399)), "2100-02-28T23:59:59.000Z");
        assert_eq!(utc(at(4_107_542_400)), "2100-03-01T00:00:00.000Z", "2100 is no leap year");
        assert_eq!(utc(at(1) + Duration::from_micros(1_999)), "1970-01-01T00:00:01.001Z");
    }
}
