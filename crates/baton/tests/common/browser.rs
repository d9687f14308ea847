//! A real browser without a window: Chromium, controlled by its DevTools protocol: objects in JSON, each ended by a
//! zero byte, through a pair of pipes. That needs neither a port nor a library.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::folder::Folder;

/// A browser with one page. It ends with the folder of its profile.
pub(crate) struct Browser {
    child: Child,
    orders: ChildStdin,
    words: Receiver<Value>,
    /// Of the page, once there is one.
    session: Option<String>,
    given: u64,
    troubles: Vec<String>,
    /// What pages have asked for.
    asked: Vec<String>,
}

/// A browser that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(90);

/// Pages look the same on every machine, and the browser contacts no other server.
const FLAGS: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    // Small in containers.
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-proxy-server",
    "--remote-debugging-pipe",
];

impl Browser {
    /// Starts one, which shows nothing yet. The folder is its home: it trusts no authority that this machine's user has added.
    pub(crate) fn start(folder: &Folder) -> Self {
        let mut command = Command::new("sh");
        // It expects its pipes after the three standard descriptors.
        command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null", "chromium"]).args(FLAGS);
        command.arg(format!("--user-data-dir={}", folder.base().join("profile").display()));
        command.arg("about:blank").process_group(folder.group()).env("HOME", folder.base());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("sh");
        let orders = child.stdin.take().expect("its standard input");
        let said = BufReader::new(child.stdout.take().expect("its standard output"));
        let (tell, words) = mpsc::channel();
        std::thread::spawn(move || {
            let words = said.split(0).map_while(Result::ok);
            // The receiver is gone once the test has ended.
            words.filter_map(|word| serde_json::from_slice(&word).ok()).all(|word| tell.send(word).is_ok())
        });
        let mut browser =
            Self { child, orders, words, session: None, given: 0, troubles: Vec::new(), asked: Vec::new() };
        let page = browser.order("Target.createTarget", &json!({ "url": "about:blank" }));
        let page = json!({ "targetId": page["targetId"], "flatten": true });
        let session = browser.order("Target.attachToTarget", &page);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for part in ["Page", "Network", "Runtime", "Log"] {
            browser.order(&format!("{part}.enable"), &json!({}));
        }
        browser
    }

    /// Accepts certificates of authorities that it does not know.
    pub(crate) fn trust_any_certificate(&mut self) {
        self.order("Security.setIgnoreCertificateErrors", &json!({ "ignore": true }));
    }

    /// Shows pages from now on as a screen of this width does, in a colour scheme: `light` or `dark`.
    pub(crate) fn look(&mut self, width: u32, scheme: &str) {
        let screen = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": true });
        self.order("Emulation.setDeviceMetricsOverride", &screen);
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.order("Emulation.setEmulatedMedia", &json!({ "features": [feature] }));
    }

    /// Opens a page, and waits until it is loaded.
    pub(crate) fn open(&mut self, url: &str) {
        let refused = self.refusal(url);
        assert_eq!(refused, None, "{url}");
        self.wait_for(&format!("document.readyState == 'complete' && location.href == {}", json!(url)));
    }

    /// Opens a page; gives the error that the browser shows instead, if there is one.
    pub(crate) fn refusal(&mut self, url: &str) -> Option<String> {
        let gone = self.order("Page.navigate", &json!({ "url": url }));
        gone["errorText"].as_str().map(str::to_owned)
    }

    /// Runs a script in the page; returns its result, also of a promise.
    #[track_caller]
    pub(crate) fn run(&mut self, script: &str) -> Value {
        self.try_to_run(script).unwrap_or_else(|told| panic!("{script}: {told}"))
    }

    /// Waits until an expression is true, in this page or in one that comes.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, condition: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // A page that is left in this moment answers nothing.
            let answer = self.try_to_run(condition);
            if answer == Ok(Value::Bool(true)) {
                return;
            }
            if Instant::now() > deadline {
                let shown = self.try_to_run("document.body.innerText");
                panic!("waited in vain for {condition}: {answer:?} {:?} {shown:?}", self.troubles);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a page is all there and shows a text.
    #[track_caller]
    pub(crate) fn wait_for_text(&mut self, text: &str) {
        let shown = format!("document.body.innerText.includes({})", json!(text));
        self.wait_for(&format!("document.readyState == 'complete' && {shown}"));
    }

    /// Chooses a file in the element of a form that this selector finds.
    pub(crate) fn choose_file(&mut self, selector: &str, file: &Path) {
        let document = self.order("DOM.getDocument", &json!({}));
        let wanted = json!({ "nodeId": document["root"]["nodeId"], "selector": selector });
        let found = self.order("DOM.querySelector", &wanted);
        self.order("DOM.setFileInputFiles", &json!({ "nodeId": found["nodeId"], "files": [file] }));
    }

    /// Keeps downloads in a folder, under the names that their servers give them.
    pub(crate) fn download_to(&mut self, folder: &Path) {
        self.order("Browser.setDownloadBehavior", &json!({ "behavior": "allow", "downloadPath": folder }));
    }

    /// Waits for a complete download, which has another name before.
    pub(crate) fn wait_for_download(&mut self, file: &Path) {
        let deadline = Instant::now() + PATIENCE;
        while !file.exists() {
            assert!(Instant::now() < deadline, "no {}: {:?}", file.display(), self.troubles());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Gives the page a window of this size.
    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.order("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Has the user prefer this scheme of colours: `light` or `dark`.
    pub(crate) fn prefer_colours(&mut self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.order("Emulation.setEmulatedMedia", &json!({ "features": [feature] }));
    }

    /// What the page looks like, all of it, as PNG in base64.
    pub(crate) fn screenshot(&mut self) -> String {
        let shot = self.order("Page.captureScreenshot", &json!({ "captureBeyondViewport": true }));
        shot["data"].as_str().expect("an image").to_owned()
    }

    /// The URLs that pages have asked for so far.
    pub(crate) fn asked(&mut self) -> &[String] {
        self.order("Page.enable", &json!({}));
        &self.asked
    }

    /// Console errors, failed requests and error statuses so far.
    pub(crate) fn troubles(&mut self) -> &[String] {
        // All events before this answer have been noted then.
        self.order("Page.enable", &json!({}));
        &self.troubles
    }

    fn try_to_run(&mut self, script: &str) -> Result<Value, Value> {
        let script = json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.ask("Runtime.evaluate", &script);
        let result = answer["result"].take();
        if result["result"].is_null() || !result["exceptionDetails"].is_null() {
            return Err(if result.is_null() { answer } else { result });
        }
        Ok(result["result"]["value"].clone())
    }

    /// Gives an order that must be obeyed.
    #[track_caller]
    fn order(&mut self, method: &str, parameters: &Value) -> Value {
        let answer = self.ask(method, parameters);
        assert!(answer["error"].is_null(), "{method} {parameters}: {answer}");
        answer["result"].clone()
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.given += 1;
        let mut order = json!({ "id": self.given, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            order["sessionId"] = json!(session);
        }
        let order = format!("{order}\0");
        self.orders.write_all(order.as_bytes()).expect("chromium: scripts/setup-tests installs it");
        loop {
            let word = self.words.recv_timeout(PATIENCE);
            let word = word.unwrap_or_else(|_| panic!("no answer to {method}: {:?}", self.troubles));
            if word["id"] == self.given {
                return word;
            }
            self.note(&word);
        }
    }

    fn note(&mut self, word: &Value) {
        let told = &word["params"];
        if word["method"] == "Network.requestWillBeSent" {
            self.asked.extend(told["request"]["url"].as_str().map(str::to_owned));
        }
        let is_trouble = match word["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => true,
            "Runtime.consoleAPICalled" => told["type"] == "error",
            "Log.entryAdded" => told["entry"]["level"] == "error",
            "Network.responseReceived" => told["response"]["status"].as_u64() >= Some(400),
            // Players cancel requests when they seek.
            "Network.loadingFailed" => told["canceled"] != true,
            _ => false,
        };
        if is_trouble {
            self.troubles.push(word.to_string());
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
