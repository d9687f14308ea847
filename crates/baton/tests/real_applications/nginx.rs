//! nginx before an application: the reference for answers.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use crate::common::folder::Folder;
use crate::common::port::free_address;
use crate::common::server::wait_until;
use crate::program::{Program, installed, is_root};

/// A running nginx.
pub(crate) struct Nginx {
    _program: Program,
    address: SocketAddr,
}

impl Nginx {
    /// Starts it with these directives of its only server; `{parameters}` is the usual FastCGI ones.
    pub(crate) fn start(folder: &Folder, directives: &str) -> Self {
        let address = free_address();
        let own = folder.base().join("nginx");
        fs::create_dir(&own).expect("a folder");
        let user = if is_root() { "user root;" } else { "" };
        let text = format!(
            "daemon off; pid {own}/pid; error_log {own}/error; {user} worker_processes 1;\n\
             events {{ worker_connections 256; }}\n\
             http {{ include /etc/nginx/mime.types; access_log off; client_max_body_size 64m;\n\
             client_body_temp_path {own}/b; proxy_temp_path {own}/p; fastcgi_temp_path {own}/f;\n\
             uwsgi_temp_path {own}/u; scgi_temp_path {own}/s;\n\
             server {{ listen {address}; {directives} }} }}\n",
            own = own.display(),
            directives = directives
                .replace("{parameters}", "include /etc/nginx/fastcgi_params; fastcgi_keep_conn on;"),
        );
        Self::run(folder, &own, &text, address)
    }

    /// Starts it with this configuration, which is written into a folder, and waits for it at an address.
    pub(crate) fn run(folder: &Folder, own: &Path, text: &str, address: SocketAddr) -> Self {
        let file = own.join("nginx.conf");
        fs::write(&file, text).expect("settings");
        let mut command = Command::new(installed("nginx-light", &["/usr/sbin/nginx", "/usr/bin/nginx"]));
        command.arg("-e").arg(own.join("error")).arg("-c").arg(file);
        let program = Program::start(&mut command, folder, &own.join("stderr"));
        wait_until("nginx serves", || TcpStream::connect(address).is_ok());
        Self { _program: program, address }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}
