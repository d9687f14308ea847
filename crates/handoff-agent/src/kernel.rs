//! What is asked of the kernel: sockets in repair, and the table of flows.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use baton_cluster::Tuple;
use baton_cluster::agent::limits;
use baton_cluster::peer::TCP_BYTES_MAX;
use baton_report::OperatorError;
use baton_sys::flow_table::{Flow, FlowTable, NextHop};
use baton_sys::interfaces;
use baton_sys::tcp_repair::{self, TcpState};

const _: () = assert!(tcp_repair::STATE_BYTES_MAX <= TCP_BYTES_MAX);

/// Flows of a front-end, and connections that a node drops packets of.
const TABLE_FLOWS_MAX: u32 = 2 * limits::FLOWS_MAX as u32;

/// A flow without packets for so long is forgotten, although no report says that it is gone: a worker of the node has died
/// before it could say that it had the flow.
const IDLE: Duration = Duration::from_secs(3600);

/// A flow that the client has ended is forgotten after so long without packets.
const IDLE_BEHIND_END: Duration = Duration::from_secs(60);

/// The table and what is known of the way to nodes.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    /// `None` before a server has said `Hello`.
    table: Option<FlowTable>,
    /// Interfaces by the address of the next hop.
    interfaces: HashMap<IpAddr, u32>,
}

impl Kernel {
    /// Makes the table, if there is none, and attaches it to these interfaces; none are named: all but the loopback interface.
    pub(crate) fn attach(&mut self, names: &[String]) -> Result<(), OperatorError> {
        self.interfaces.clear();
        let table = match &mut self.table {
            Some(table) => table,
            none => none.insert(make_table()?),
        };
        let all = interfaces::addresses()
            .map_err(|error| OperatorError::of("list the network interfaces", &error))?;
        for name in names {
            if !all.iter().any(|one| one.name == *name) {
                return Err(OperatorError::new(format!(
                    "there is no network interface {name} with an address"
                ))
                .remedy("`ip address` lists them"));
            }
        }
        let is_wanted = |name: &str, is_loopback: bool| match names.is_empty() {
            true => !is_loopback,
            false => names.iter().any(|wanted| wanted == name),
        };
        for one in all.iter().filter(|one| is_wanted(&one.name, one.is_loopback)) {
            table.attach(one.number).map_err(|error| {
                OperatorError::of(format_args!("look at the packets of {}", one.name), &error)
                    .cause("the kernel is older than Linux 6.6, or the interface has just gone")
            })?;
        }
        Ok(())
    }

    /// Drops the client's packets, takes the connection out of the kernel, and says what it was.
    pub(crate) fn freeze(&mut self, tuple: Tuple, socket: OwnedFd) -> Result<Vec<u8>, (OwnedFd, String)> {
        if let Err(error) = self.hold(tuple) {
            return Err((socket, format!("its packets cannot be held back: {error}")));
        }
        let dump = || {
            tcp_repair::freeze(&socket).map_err(|error| error.to_string())?;
            let state = tcp_repair::dump(&socket).map_err(|error| error.to_string())?;
            if Tuple::new(state.peer, state.local) != Some(tuple) {
                return Err("it has other ends".to_owned());
            }
            tcp_repair::end(&socket).map_err(|error| error.to_string())?;
            Ok(state)
        };
        match dump() {
            Ok(state) => Ok(state.to_bytes()),
            Err(why) => {
                // If it was never frozen, this changes nothing.
                let _ = tcp_repair::thaw(&socket);
                self.remove(tuple);
                Err((socket, why))
            }
        }
    }

    /// Makes a connection, frozen.
    pub(crate) fn restore(&self, tuple: Tuple, tcp: &[u8]) -> Result<OwnedFd, String> {
        let state = TcpState::from_bytes(tcp).ok_or("its state is of another version, or damaged")?;
        if Tuple::new(state.peer, state.local) != Some(tuple) {
            return Err("its state is another connection's".into());
        }
        tcp_repair::restore(&state).map_err(|error| match error.kind() {
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => format!(
                "{error}; this host lacks the address {}, or still has an old connection with these ends. Nodes have the \
                 address on their loopback interface",
                state.local.ip()
            ),
            _ => error.to_string(),
        })
    }

    pub(crate) fn hold(&mut self, tuple: Tuple) -> io::Result<()> {
        self.table.as_mut().ok_or(io::ErrorKind::NotFound)?.hold(flow(tuple))
    }

    pub(crate) fn forward(&mut self, tuple: Tuple, next_hop: IpAddr) -> Result<(), String> {
        let interface = match self.interfaces.get(&next_hop) {
            Some(interface) => *interface,
            None => {
                let interface = interfaces::towards(next_hop).map_err(|error| error.to_string())?;
                let interface = interface.ok_or_else(|| {
                    format!("{next_hop} is on no network of this host: packets can be forwarded to neighbours only")
                })?;
                self.interfaces.insert(next_hop, interface);
                interface
            }
        };
        let table = self.table.as_mut().ok_or("there is no table of flows")?;
        table
            .forward(flow(tuple), NextHop { interface, address: next_hop })
            .map_err(|error| error.to_string())
    }

    pub(crate) fn end(&self, tuple: Tuple) {
        if let Some(table) = &self.table {
            table.end(flow(tuple));
        }
    }

    pub(crate) fn remove(&mut self, tuple: Tuple) {
        if let Some(table) = &mut self.table {
            table.remove(flow(tuple));
        }
    }

    /// Flows that are over, as far as the kernel can see.
    pub(crate) fn ended(&self) -> Vec<Tuple> {
        let reports = self.table.iter().flat_map(FlowTable::reports);
        let is_over = reports.filter(|(_, report)| {
            let has_ended = report.fin || report.rst;
            report.replaced || report.idle > IDLE || has_ended && report.idle > IDLE_BEHIND_END
        });
        is_over.filter_map(|(flow, _)| Tuple::new(flow.client, flow.vip)).collect()
    }
}

fn make_table() -> Result<FlowTable, OperatorError> {
    tcp_repair::self_test().map_err(|error| {
        OperatorError::of("freeze connections", &error)
            .cause(
                "the handoff agent lacks CAP_NET_ADMIN, or the kernel is without CONFIG_CHECKPOINT_RESTORE",
            )
            .remedy("start the server as root; until then requests are relayed")
    })?;
    FlowTable::create(TABLE_FLOWS_MAX).map_err(|error| {
        OperatorError::of("load the program that forwards packets", &error)
            .cause("the handoff agent lacks CAP_BPF or CAP_NET_ADMIN, or the kernel is older than Linux 6.6")
            .remedy("start the server as root on a newer kernel; until then requests are relayed")
    })
}

fn flow(tuple: Tuple) -> Flow {
    Flow { client: tuple.client, vip: tuple.server }
}
