//! Requests that are refused or slowed down for what they say of themselves.

use crate::common::server::Server;

crate::everywhere!(crawlers_of_a_file_are_refused, a_limit_counts_those_that_it_means);

fn crawlers_of_a_file_are_refused(server: &Server) {
    let mut client = server.agent();
    for (agent, status) in [
        ("Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.example/gptbot)", 403),
        ("CCBot/2.0", 403),
        ("Evil/7", 403),
        ("Not Evil/7", 200),
        ("Mozilla/5.0 (X11; Linux x86_64)", 200),
    ] {
        let response = client.ask("GET", "/shut/a.txt", &format!("User-Agent: {agent}\r\n"));
        assert_eq!(response.status, status, "{agent}");
    }
    assert_eq!(client.get("/shut/a.txt").status, 200, "without a name");
}

fn a_limit_counts_those_that_it_means(server: &Server) {
    let mut client = server.agent();
    let mut ask = |agent: &str| client.ask("GET", "/slow/a.txt", &format!("User-Agent: {agent}\r\n")).status;
    // Tests over other protocols may have taken the only token.
    ask("SlowBot/1");
    assert_eq!(ask("slowbot/2"), 429);
    for _ in 0..3 {
        assert_eq!(ask("Browser"), 200);
    }
}
