//! The scripts in PHP that a site has.

/// Adds `operations` times, and sends the file of `bytes` bytes.
pub(super) const COMPUTE: &str = include_str!("compute.php");
/// A page of a bank: an account with its entries.
pub(super) const BANKING: &str = include_str!("banking.php");
/// A page of a shop: products with their prices.
pub(super) const ECOMMERCE: &str = include_str!("ecommerce.php");
/// A page of a support site: a list of downloads.
pub(super) const SUPPORT: &str = include_str!("support.php");
