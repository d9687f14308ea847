//! The transport `shm`: the application writes its answer into a region that the server reads.
//!
//! The region belongs to one connection and is reused by all of its requests: fresh pages cost more than copies. The
//! slices that the application announces are lent to the session that sends them. When a loan ends, the application may
//! write there again. If a slow client holds a loan while the region is needed, its bytes are copied out.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use baton_buf::{Loan, SharedSlice};
use baton_fcgi::RegionSlice;
use baton_fcgi::offer::{Bodies, Offer, Transport};
use baton_pool::Region;
use rustix::io::Errno;

use crate::RequestId;
use crate::ring::{OutsideOfRegion, Ring};

/// A region and the loans of it.
#[derive(Debug)]
pub(crate) struct SharedRegion {
    region: Arc<Region>,
    ring: Ring,
    /// In the order of their announcement, with their request.
    loans: VecDeque<(RequestId, Arc<Loan>)>,
    /// Sent with the first offer.
    descriptor: Option<OwnedFd>,
}

impl SharedRegion {
    /// A region of `bytes` bytes, less than 4 GiB.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub(crate) fn create(bytes: usize) -> Result<Self, Errno> {
        let size = u32::try_from(bytes).map_err(|_| Errno::FBIG)?;
        let (region, descriptor) = Region::create(bytes)?;
        Ok(Self {
            region: Arc::new(region),
            ring: Ring::new(size),
            loans: VecDeque::new(),
            descriptor: Some(descriptor),
        })
    }

    /// Appends an offer of the region to a block of parameters. Returns the descriptor with the first offer.
    pub(crate) fn offer(&mut self, patience_ms: u32, bodies: Bodies, block: &mut Vec<u8>) -> Option<OwnedFd> {
        let descriptor = self.descriptor.take();
        let fds = usize::from(descriptor.is_some()) + bodies.fds();
        Offer {
            transport: Transport::Shm(self.ring.offer()),
            fds,
            bodies,
            patience_ms,
            holds: false,
            fields: b"",
        }
        .push(block);
        descriptor
    }

    /// Lends a slice that the application has announced.
    ///
    /// # Errors
    /// The slice is not where the application had to write next.
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

    /// Ends the oldest loans, up to the first one still in use.
    pub(crate) fn end_loans(&mut self) {
        while let Some((_, oldest)) = self.loans.front_mut()
            && oldest.is_over()
        {
            self.ring.end_loan(oldest.len() as u32);
            self.loans.pop_front();
        }
    }

    /// Ends the loans of other requests in front of this one's, copying bytes still in use.
    pub(crate) fn move_out_others(&mut self, request_id: RequestId) {
        while let Some((borrower, _)) = self.loans.front()
            && *borrower != request_id
        {
            self.move_out_oldest();
        }
    }

    /// Ends all loans, copying bytes still in use.
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

    /// How many bytes to announce as free to the application, if enough.
    pub(crate) fn tell_free(&mut self) -> Option<u32> {
        self.ring.tell_free()
    }

    /// Whether more than half is lent.
    pub(crate) fn is_crowded(&mut self) -> bool {
        self.end_loans();
        self.ring.is_crowded()
    }

    /// Other requests with loans. Bytes are freed in order, so these loans hold up those of this request.
    pub(crate) fn others(&self, request_id: RequestId) -> impl Iterator<Item = RequestId> {
        self.loans.iter().map(|(borrower, _)| *borrower).filter(move |borrower| *borrower != request_id)
    }

    /// Whether the application will soon have to wait for loans to end.
    pub(crate) fn is_short(&self) -> bool {
        self.ring.is_short() && !self.loans.is_empty()
    }
}
