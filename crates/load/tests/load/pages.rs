//! The scripts in PHP, in the server that PHP brings along: each page is as long as it says.

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use baton_load::site::{Application, SiteKind};
use baton_load::{Load, LoadSettings};

/// A server that ends with the test.
struct Php(Child);

impl Drop for Php {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn each_page_is_as_long_as_it_says() {
    let root = tempfile::tempdir().unwrap();
    let sites = [Application::Banking, Application::Ecommerce, Application::Support]
        .map(|application| SiteKind::Specweb2005 { application, requests: 60 })
        .into_iter()
        .chain([SiteKind::Compute { bytes: 60 << 10, operations: 1_000 }])
        .map(|kind| kind.make().unwrap());
    let address: SocketAddr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut server = Command::new("php");
    server.arg("-S").arg(address.to_string()).arg("-t").arg(root.path());
    let Ok(child) = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        eprintln!("LEFT OUT of each_page_is_as_long_as_it_says: php is not installed");
        return;
    };
    let _server = Php(child);
    let limit = Instant::now() + Duration::from_secs(30);
    while std::net::TcpStream::connect(address).is_err() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(20));
    }
    for site in sites {
        site.write(root.path()).unwrap();
        let settings = LoadSettings {
            connection_per_request: true,
            requests_max: Some(site.script.steps().len() as u64),
            sleep: true,
            verify: true,
            ..LoadSettings::new(address, Duration::from_secs(60))
        };
        let asked = site.script.steps().iter().map(|step| &site.script.requests()[step.request as usize]);
        let report = Load::connect(&settings, asked.clone().cloned()).unwrap().run().unwrap();
        assert_eq!(report.failed(), 0, "{site}: {:?}", report.first_failure);
        assert_eq!(report.requests, site.script.steps().len() as u64);
        let expected: u64 = asked.map(|request| request.bytes.unwrap()).sum();
        assert_eq!(report.bytes, expected, "{site}");
    }
}
