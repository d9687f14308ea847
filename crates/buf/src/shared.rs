//! Bytes in a region, until the region's owner takes them back.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_pool::Region;

use crate::Slice;

/// Bytes of a [`Region`] on loan to a sender.
///
/// A slow client must not block the process that writes to the region. So the region's owner may end a loan at any
/// time by copying its bytes elsewhere ([`Loan::move_out`]): for all slices of the loan the address changes, the
/// bytes do not.
#[derive(Debug)]
pub struct Loan {
    place: Mutex<LoanedBytes>,
    len: usize,
}

#[derive(Debug)]
pub(crate) enum LoanedBytes {
    Region { region: Arc<Region>, offset: usize },
    Memory(Slice),
}

impl Loan {
    /// The bytes `offset..offset + len` of `region`.
    ///
    /// # Panics
    /// If they exceed the region, or are 4 GiB or more.
    pub fn new(region: Arc<Region>, offset: usize, len: usize) -> Arc<Self> {
        assert!(
            offset.checked_add(len).is_some_and(|end| end <= region.len()),
            "a loan beyond the end of the region"
        );
        assert!(u32::try_from(len).is_ok(), "slices are smaller than 4 GiB");
        Arc::new(Self { place: Mutex::new(LoanedBytes::Region { region, offset }), len })
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of the bytes.
    pub fn slice(self: &Arc<Self>) -> SharedSlice {
        SharedSlice { loan: Arc::clone(self), start: 0, end: self.len as u32 }
    }

    /// Copies the bytes into memory of their own and releases those of the region. Waits while another thread is
    /// sending them.
    pub fn move_out(&self) {
        let mut place = self.lock();
        if let LoanedBytes::Region { region, offset } = &*place {
            let mut bytes = Vec::new();
            region.copy_to(*offset, self.len, &mut bytes);
            *place = LoanedBytes::Memory(bytes.into());
        }
    }

    /// Whether the bytes of the region are unused: they have been moved out, or no slice refers to them.
    pub fn is_over(self: &mut Arc<Self>) -> bool {
        match Arc::get_mut(self) {
            Some(_) => true,
            None => matches!(*self.lock(), LoanedBytes::Memory(_)),
        }
    }

    /// Holds the bytes where they are.
    pub(crate) fn lock(&self) -> MutexGuard<'_, LoanedBytes> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A range of the bytes of a [`Loan`]; cloning shares them.
#[derive(Clone)]
pub struct SharedSlice {
    loan: Arc<Loan>,
    start: u32,
    end: u32,
}

impl SharedSlice {
    /// Number of bytes.
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether the range is empty.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Appends a copy of the first `len` bytes, or of all where there are fewer.
    pub fn copy_prefix_to(&self, len: usize, out: &mut Vec<u8>) {
        let len = len.min(self.len());
        match &*self.loan.lock() {
            LoanedBytes::Region { region, offset } => region.copy_to(offset + self.start as usize, len, out),
            LoanedBytes::Memory(slice) => out.extend_from_slice(&slice[self.start as usize..][..len]),
        }
    }

    /// Shortens the slice to its first `at` bytes and returns the rest.
    ///
    /// # Panics
    /// If `at` is larger than the slice.
    pub fn split_off(&mut self, at: usize) -> Self {
        assert!(at <= self.len(), "split of a slice of {} bytes at {at}", self.len());
        let middle = self.start + at as u32;
        let rest = Self { loan: Arc::clone(&self.loan), start: middle, end: self.end };
        self.end = middle;
        rest
    }

    /// Drops the first `count` bytes from view.
    ///
    /// # Panics
    /// If `count` is larger than the slice.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.len(), "advance of a slice of {} bytes by {count}", self.len());
        self.start += count as u32;
    }

    pub(crate) fn loan(&self) -> &Arc<Loan> {
        &self.loan
    }

    /// Where the bytes are, given where those of the loan are.
    pub(crate) fn address(&self, place: &LoanedBytes) -> *const u8 {
        match place {
            LoanedBytes::Region { region, offset } => {
                region.address(offset + self.start as usize, self.len())
            }
            LoanedBytes::Memory(slice) => slice[self.start as usize..self.end as usize].as_ptr(),
        }
    }
}

impl fmt::Debug for SharedSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedSlice({}..{})", self.start, self.end)
    }
}
