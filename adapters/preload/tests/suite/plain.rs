//! Without an offer everything is as it would be without the library.
