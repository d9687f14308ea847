//! Which ciphers and key exchanges clients are offered: Mozilla's *intermediate* (guideline 5.8).

use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{default_provider, kx_group};

/// The primitives. The cipher suites are those of the library: all of TLS 1.3, and of TLS 1.2 those with ECDHE and an
/// AEAD. The post-quantum exchange comes first: it protects today's recordings from tomorrow's computers.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
        let kx_groups =
            vec![kx_group::X25519MLKEM768, kx_group::X25519, kx_group::SECP256R1, kx_group::SECP384R1];
        Arc::new(CryptoProvider { kx_groups, ..default_provider() })
    });
    Arc::clone(&PROVIDER)
}
