//! HPACK, the compression of heads in HTTP/2 (RFC 7541).
//!
//! ```text
//!   block ─► Decoder ─► Fields::next ─► Field { name, value }     table: the client's, bounded by our setting
//!   block ◄─ encoder ◄─ lines of a head                           no table: a block fits every connection
//! ```

mod decoder;
mod encoder;

mod huffman;
mod integer;
mod static_table;
mod table;

pub use decoder::{Decoder, Field, Fields};
pub(super) use encoder::{push_name, push_status, push_value};

crate::reasons! {
    /// Why a block cannot be decoded. The two sides' tables differ from here on, so the connection ends with
    /// COMPRESSION_ERROR (RFC 9113 section 4.3).
    CompressionError {
        /// The block ends within a field.
        Truncated => "hpack-truncated",
            "a header block ends within a field";
        /// A number that does not fit 32 bits, or has needless octets (RFC 7541 section 5.1).
        Integer => "hpack-integer",
            "a header block has a number beyond 32 bits";
        /// An index beyond both tables, or 0 (RFC 7541 sections 2.3.3 and 6.1).
        Index => "hpack-index",
            "a header block refers to a field that is in no table";
        /// A string is not made of the codes of appendix B, or is padded with anything but fewer than eight ones.
        Huffman => "hpack-huffman",
            "a header block has a string that is no Huffman code";
        /// A table size above the one that was announced (RFC 7541 section 6.3).
        TableSize => "hpack-table-size",
            "a header block makes the table larger than was allowed";
        /// A table size behind the first field of a block (RFC 7541 section 4.2).
        TableSizeLate => "hpack-table-size-late",
            "a header block changes the size of the table after a field";
    }
}
