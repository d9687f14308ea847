//! Certificates in the status and in the metrics.

use serde_json::Value;

use super::authority::Authority;
use crate::common::client;
use crate::common::folder::Folder;
use crate::common::server::Server;

#[test]
fn the_days_that_are_left_can_be_watched() {
    let authority = Authority::new("authority");
    let folder = Folder::new();
    authority.issue(&["a.test", "b.test"]).install(&folder, "a");
    let server = Server::run(
        folder,
        "[[site]]\nname = \"own\"\nroot = \"{root}\"\nlisten = \"127.0.0.1:0 tls\"\n\
         tls = { certificate = \"a.pem\", key = \"a.key\" }\n[admin]\nlisten = \"127.0.0.1:0\"\n",
    );
    let status: Value = serde_json::from_str(&server.ctl(&["--json", "status"])).expect("JSON");
    let certificate = &status["certificates"][0];
    assert_eq!((&certificate["site"], &certificate["key"]), (&"own".into(), &"ecdsa".into()));
    assert_eq!(certificate["names"], serde_json::json!(["a.test", "b.test"]));
    assert!(certificate["source"].as_str().is_some_and(|source| source.ends_with("/a.pem")));
    let days = certificate["days_left"].as_i64().expect("a number");
    assert!(days > 300, "{certificate}");
    let metrics = client::Client::connect(*server.addresses().last().expect("monitoring")).get("/metrics");
    let line = format!("baton_certificate_days_left{{site=\"own\",key=\"ecdsa\"}} {days}\n");
    assert!(metrics.text().contains(&line), "{}", metrics.text());
}
