//! Decimal numbers of the grammar: digits only, no sign, no blanks.

/// Appends `number` in decimal.
pub fn push_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0u8; DIGITS_MAX];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

/// How many digits `number` has in decimal.
pub(crate) const fn decimal_len(number: u64) -> u64 {
    match number.checked_ilog10() {
        Some(log) => log as u64 + 1,
        None => 1,
    }
}

/// `1*DIGIT` as a number; `None` if it is anything else or does not fit.
pub fn parse_decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// The digits of `u64::MAX`.
const DIGITS_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_the_way_out_and_back() {
        for number in [0, 1, 9, 10, 99, 100, 12_345, u64::MAX - 1, u64::MAX] {
            let mut text = Vec::new();
            push_decimal(&mut text, number);
            assert_eq!(text, number.to_string().as_bytes());
            assert_eq!(decimal_len(number), text.len() as u64);
            assert_eq!(parse_decimal(&text), Some(number));
        }
    }

    #[test]
    fn only_digits_that_fit_are_numbers() {
        for text in ["", "+1", "-1", " 1", "1 ", "0x1", "1_0", "18446744073709551616", "٣"] {
            assert_eq!(parse_decimal(text.as_bytes()), None, "{text:?}");
        }
    }
}
