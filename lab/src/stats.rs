//! The few statistics that a comparison needs: medians, spread, and ratios of pairs.

/// The median of `values` (the mean of the middle two if their number is even); `None` if there are none.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// How far `values` are apart: (largest - smallest) / median; `None` without values or around zero.
#[must_use]
pub fn spread(values: &[f64]) -> Option<f64> {
    let median = median(values).filter(|median| *median != 0.0)?;
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some((largest - smallest) / median)
}

/// The median over rounds of value / reference *of the same round*.
///
/// A machine drifts: clock rates, neighbours, caches. Two values of one round were measured seconds apart and share
/// most of the drift, so their ratio is more exact than that of two medians. Rounds without both values do not count.
/// Items are `(round, value)`.
#[must_use]
pub fn paired_ratio(values: &[(usize, f64)], reference: &[(usize, f64)]) -> Option<f64> {
    let ratios: Vec<f64> = values
        .iter()
        .filter_map(|(round, value)| {
            let (_, base) = reference.iter().find(|(other, base)| other == round && *base != 0.0)?;
            Some(value / base)
        })
        .collect();
    median(&ratios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_of_the_sorted_values() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }

    #[test]
    fn one_wild_round_does_not_move_the_median() {
        assert_eq!(median(&[10.0, 11.0, 1000.0, 10.5, 9.5]), Some(10.5));
    }

    #[test]
    fn the_spread_is_relative_to_the_median() {
        assert_eq!(spread(&[8.0, 10.0, 12.0]), Some(0.4));
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[0.0, 0.0]), None);
    }

    #[test]
    fn a_drift_that_hits_both_of_a_pair_leaves_their_ratio_alone() {
        // The machine gets slower by half in every round; the contender always needs 0.8 of the reference.
        let reference: Vec<_> = (0..5).map(|round| (round, 10.0 * 1.5_f64.powi(round as i32))).collect();
        let contender: Vec<_> = reference.iter().map(|(round, value)| (*round, value * 0.8)).collect();
        let ratio = paired_ratio(&contender, &reference).unwrap();
        assert!((ratio - 0.8).abs() < 1e-12);
    }

    #[test]
    fn rounds_without_a_partner_do_not_count() {
        let ratio = paired_ratio(&[(0, 5.0), (1, 100.0), (2, 15.0)], &[(0, 10.0), (2, 10.0), (3, 1.0)]);
        assert_eq!(ratio, Some(1.0));
        assert_eq!(paired_ratio(&[(0, 1.0)], &[(1, 1.0)]), None);
        assert_eq!(paired_ratio(&[(0, 1.0)], &[(0, 0.0)]), None);
    }
}
