//! Nodes that come and go by themselves: real servers that register in a real etcd, and addresses of a host name.

#[path = "../common/mod.rs"]
mod common;
mod dns;
mod etcd;
mod hosts;
mod load;
mod operator;
#[path = "../common/origin.rs"]
mod origin;
mod prompts;
#[path = "../../../membership/tests/etcd/store.rs"]
mod store;

use self::common::port;
