//! The transport `shm`: the application writes its answer into a region that the server reads.
//!
//! The region belongs to one connection, and is used again for as long as that lives: fresh pages cost more than copies.
//! What the application announces is lent to whoever sends it. When a loan ends, the application may write there again;
//! and when the region is wanted while a client is slow, its bytes are moved out.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use baton_buf::{Loan, Region, SharedSlice};
use baton_fcgi::RegionSlice;
use baton_fcgi::offer::{Offer, Transport};
use rustix::io::Errno;

use crate::RequestId;
use crate::ring::{OutsideOfRegion, Ring};

/// A region and what is lent of it.
#[derive(Debug)]
pub(crate) struct SharedRegion {
    region: Arc<Region>,
    ring: Ring,
    /// In the order of their announcement, with the request whose answer they are.
    loans: VecDeque<(RequestId, Arc<Loan>)>,
    /// To be sent with the first offer.
    descriptor: Option<OwnedFd>,
}

impl SharedRegion {
    /// A region of `bytes` bytes, less than 4 GiB.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub(crate) fn create(bytes: usize) -> Result<Self, Errno> {
        let size = u32::try_from(bytes).map_err(|_| Errno::FBIG)?;
        let (region, descriptor) =
            Region::create(bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(Self {
            region: Arc::new(region),
            ring: Ring::new(size),
            loans: VecDeque::new(),
            descriptor: Some(descriptor),
        })
    }

    /// Offers the region to the next request: appends the offer to a block of parameters. The descriptor goes with the
    /// first one.
    pub(crate) fn offer(&mut self, patience_ms: u32, block: &mut Vec<u8>) -> Option<OwnedFd> {
        let descriptor = self.descriptor.take();
        let fds = usize::from(descriptor.is_some());
        Offer { transport: Transport::Shm(self.ring.offer()), fds, patience_ms, fields: b"" }.push(block);
        descriptor
    }

    /// Lends what the application has announced.
    ///
    /// # Errors
    /// It is not what the application was to write next.
    pub(crate) fn lend(
        &mut self,
        request_id: RequestId,
        slice: RegionSlice,
    ) -> Result<Option<SharedSlice>, OutsideOfRegion> {
        self.ring.announce(slice)?;
        if slice.len == 0 {
            return Ok(None);
        }
        let loan = Loan::new(Arc::clone(&self.region), slice.offset as usize, slice.len as usize);
        let all = loan.slice();
        self.loans.push_back((request_id, loan));
        Ok(Some(all))
    }

    /// Ends the loans that nobody needs any more, in their order.
    pub(crate) fn end_loans(&mut self) {
        while let Some((_, oldest)) = self.loans.front_mut()
            && oldest.is_over()
        {
            self.ring.end_loan(oldest.len() as u32);
            self.loans.pop_front();
        }
    }

    /// Ends the loans of all requests but this one, and copies what is needed of them still.
    pub(crate) fn move_out_others(&mut self, request_id: RequestId) {
        while let Some((borrower, _)) = self.loans.front()
            && *borrower != request_id
        {
            self.move_out_oldest();
        }
    }

    /// Ends all loans, and copies what is needed still.
    pub(crate) fn move_out(&mut self) {
        while !self.loans.is_empty() {
            self.move_out_oldest();
        }
    }

    fn move_out_oldest(&mut self) {
        let Some((_, mut loan)) = self.loans.pop_front() else { return };
        if !loan.is_over() {
            loan.move_out();
        }
        self.ring.end_loan(loan.len() as u32);
    }

    /// How many bytes the application is to be told of that it may write again.
    pub(crate) fn tell_free(&mut self) -> Option<u32> {
        self.ring.tell_free()
    }

    /// Whether so much is lent that too little could be offered.
    pub(crate) fn is_crowded(&mut self) -> bool {
        self.end_loans();
        self.ring.is_crowded()
    }

    /// Other requests to which something is lent. The application gets its bytes back in their order, so that these are
    /// in the way of this one.
    pub(crate) fn others(&self, request_id: RequestId) -> impl Iterator<Item = RequestId> {
        self.loans.iter().map(|(borrower, _)| *borrower).filter(move |borrower| *borrower != request_id)
    }

    /// Whether the application will soon have to wait for loans to end.
    pub(crate) fn is_short(&self) -> bool {
        self.ring.is_short() && !self.loans.is_empty()
    }
}
