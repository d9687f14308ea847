//! Servers: workers that answer, hand over, keep and return.

use baton_cluster::agent::HandoffAgent;
use baton_cluster::local::Report;
use baton_passport::Passport;

use crate::events::{Event, ToAgent};
use crate::host::{Handle, Owner};
use crate::server::{Client, passport, request_of};
use crate::world::{FRONT_ENDS, World};

impl World {
    pub(crate) fn say_hello(&mut self, host: usize) {
        let server = &mut self.hosts[host].server;
        server.nodes.clear();
        (server.drains, server.gives_back) = (Vec::new(), false);
        let nodes = self.nodes_for(host);
        self.with_agent(host, |agent, now_ms| agent.handle_server(&nodes, now_ms));
    }

    pub(crate) fn start_server(&mut self, host: usize) {
        let server = &mut self.hosts[host].server;
        if server.is_up {
            return;
        }
        server.is_up = true;
        server.life += 1;
        self.say_hello(host);
    }

    /// All its processes end at once.
    pub(crate) fn kill_server(&mut self, host: usize) {
        let at = &mut self.hosts[host];
        if !at.server.is_up {
            return;
        }
        at.server.is_up = false;
        at.server.nodes.clear();
        at.server.clients.clear();
        at.is_hurt = true;
        self.events.take(|event| matches!(event, Event::ToServer { host: of, .. } if *of == host));
        self.close_all(host, &[Owner::Server, Owner::ToServer]);
        self.with_agent(host, HandoffAgent::handle_server_gone);
    }

    /// Another server takes its place, with all its clients.
    pub(crate) fn upgrade(&mut self, host: usize) {
        if !self.hosts[host].server.is_up {
            return;
        }
        self.hosts[host].server.life += 1;
        self.say_hello(host);
    }

    pub(crate) fn name_nodes(&mut self, front_end: usize, without: Option<usize>) {
        let mut nodes = self.nodes_for(front_end);
        if let Some(without) = without {
            let name = Self::node(without).name;
            nodes.retain(|node| node.name != name);
            self.hosts[front_end].server.nodes.remove(&name);
        }
        if self.hosts[front_end].server.is_up {
            self.with_agent(front_end, |agent, now_ms| agent.handle_nodes(&nodes, now_ms));
        }
        if let Some(without) = without {
            self.hosts[front_end].server.nodes.remove(&Self::node(without).name);
        }
    }

    /// A worker has a client, perhaps with a request.
    pub(crate) fn take_client(
        &mut self,
        host: usize,
        handle: Handle,
        flow: Option<u64>,
        requests: u64,
        request: Option<u64>,
    ) {
        let conn = handle.conn;
        self.owner(host, conn, Owner::Server);
        let client = Client { handle, flow, request, requests };
        assert!(self.hosts[host].server.clients.insert(conn, client).is_none());
        let life = self.hosts[host].life;
        self.after(15_000_000, Event::Idle { host, life, conn });
    }

    pub(crate) fn worker_gets(&mut self, host: usize, _: u64, handle: Handle, passport: &Passport) {
        let (conn, request) = (handle.conn, request_of(passport));
        assert_eq!(passport.flow.is_some(), Self::is_node(host), "nodes get flows, front-ends do not");
        self.take_client(host, handle, passport.flow, passport.requests, Some(request));
        if Self::is_node(host) {
            self.sum.stayed += u64::from(passport.stay);
            self.begin(host, conn, request);
        } else if passport.stay {
            self.sum.stayed += 1;
            self.begin(host, conn, request);
        } else {
            self.sum.returned += 1;
            self.choose(host, conn, request);
        }
    }

    /// Answers some time later.
    fn begin(&mut self, host: usize, conn: u64, request: u64) {
        let life = self.hosts[host].server.life;
        let delay_us = self.dice.range(50, 20_000);
        self.after(delay_us, Event::Answer { host, life, conn, request });
    }

    /// There is something to read.
    pub(crate) fn client_readable(&mut self, host: usize, conn: u64) {
        let Some(client) = self.hosts[host].server.clients.get(&conn) else { return };
        if client.request.is_some() {
            return;
        }
        let flow = client.flow;
        let gives_back = self.hosts[host].server.gives_back;
        let socket = self.hosts[host].sockets.get_mut(&conn).expect("a client's socket");
        let Some(request) = socket.inbox.pop_front() else {
            if socket.is_finished {
                self.close_client(host, conn);
            }
            return;
        };
        self.hosts[host].server.clients.get_mut(&conn).unwrap().request = Some(request);
        match flow {
            None => self.choose(host, conn, request),
            Some(flow) if self.hosts[host].agent.is_some() && (self.dice.percent(40) || gives_back) => {
                self.sum.given_back += u64::from(gives_back);
                self.leave(host, conn, |handle, passport| ToAgent::Return { flow, handle, passport });
            }
            Some(flow) => {
                self.sum.kept += 1;
                self.report(host, Report { begun: vec![flow], ..Report::default() });
                self.begin(host, conn, request);
            }
        }
    }

    /// A front-end's worker chooses: a node, or itself.
    fn choose(&mut self, host: usize, conn: u64, request: u64) {
        let node = FRONT_ENDS + self.dice.range(0, 3) as usize;
        let name = Self::node(node).name;
        let server = &self.hosts[host].server;
        let is_drained = server.drains.iter().any(|drain| drain.is_drained && drain.node == name);
        let reachable = server.nodes.get(&name).is_some_and(|view| view.is_reachable) && !is_drained;
        // Now and then a worker has not heard yet.
        let is_chosen = self.dice.percent(if reachable { 80 } else { 5 });
        let has_agent = self.hosts[host].agent.is_some();
        if let Some(view) = self.hosts[host].server.nodes.get_mut(&name).filter(|_| has_agent && is_chosen) {
            view.sent += 1;
            self.leave(host, conn, |handle, passport| ToAgent::Handoff { node: name, handle, passport });
        } else {
            self.begin(host, conn, request);
        }
    }

    /// Gives a client to the agent, with its request.
    fn leave(&mut self, host: usize, conn: u64, message: impl FnOnce(Handle, Box<Passport>) -> ToAgent) {
        let client = self.hosts[host].server.clients.remove(&conn).unwrap();
        self.owner(host, conn, Owner::ToAgent);
        let passport = passport(self.conns[&conn].tuple.client, client.requests, client.request.unwrap());
        self.post(host, message(client.handle, passport));
    }

    fn report(&mut self, host: usize, report: Report) {
        self.post(host, ToAgent::Report(report));
    }

    /// One queue for all: what was said first arrives first.
    fn post(&mut self, host: usize, message: ToAgent) {
        let (life, server_life) = (self.hosts[host].life, self.hosts[host].server.life);
        self.after(30, Event::ToAgent { host, life, server_life, message });
    }

    pub(crate) fn answer(&mut self, host: usize, _: u64, conn: u64, request: u64) {
        let Some(client) = self.hosts[host].server.clients.get_mut(&conn) else { return };
        if client.request != Some(request) {
            return;
        }
        client.request = None;
        client.requests += 1;
        let flow = client.flow;
        let socket = self.hosts[host].sockets.get_mut(&conn).expect("a client's socket");
        assert_eq!(socket.sent, request, "connection {conn}: an answer is missing, or repeated");
        socket.sent += 1;
        let delay_us = self.dice.range(20, 1_000);
        self.after(delay_us, Event::Response { conn, request });
        if let Some(flow) = flow {
            self.sum.by_nodes += 1;
            self.report(host, Report { ended: vec![flow], ..Report::default() });
        }
        self.client_readable(host, conn);
    }

    pub(crate) fn close_client(&mut self, host: usize, conn: u64) {
        let Some(client) = self.hosts[host].server.clients.remove(&conn) else { return };
        self.close(host, conn, Some(Event::Closed { conn }));
        if let Some(flow) = client.flow {
            self.report(host, Report { gone: vec![flow], ..Report::default() });
        }
    }

    pub(crate) fn look_at_client(&mut self, host: usize, life: u64, conn: u64) {
        if !self.hosts[host].server.clients.contains_key(&conn) {
            return;
        }
        if self.conns[&conn].is_over() {
            return self.close_client(host, conn);
        }
        self.after(15_000_000, Event::Idle { host, life, conn });
    }
}
