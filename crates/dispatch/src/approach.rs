//! Prices that follow what is measured.

/// Brings a price nearer to a sample: it remembers about `recent` of them. An interruption counts for a few times the usual at the
/// most. A price is never below 1.
pub(crate) fn approach(price: &mut f64, sample: f64, recent: f64) {
    *price += (sample.min(*price * OUTLIER) - *price) / recent;
    *price = price.max(1.0);
}

/// A sample counts for so many times the price at the most.
const OUTLIER: f64 = 4.0;
