// SPDX-License-Identifier: MIT

//! The real binary, which MAYFLY_BINARY names, on a port that was free, with a clock to move.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use azure_data_cosmos::{AccountEndpoint, AccountReference, CosmosClient, RoutingStrategy};

const KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const REQUEST_LIMIT: Duration = Duration::from_secs(20);

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

pub struct Server {
    binary: String,
    scratch: PathBuf,
    process: Child,
    port: u16,
}

impl Server {
    /// Starts a server, and makes this process trust its certificate: the SDK asks the
    /// system what to trust, and SSL_CERT_FILE tells it.
    pub fn start() -> Result<Self> {
        let binary = std::env::var("MAYFLY_BINARY")?;
        let scratch =
            std::env::temp_dir().join(format!("mayfly-compat-rust-{}", std::process::id()));
        std::fs::create_dir(&scratch)?;
        let (process, port) = serve(&binary, &scratch, 0)?;
        let server = Server {
            binary,
            scratch,
            process,
            port,
        };
        let certificate = Command::new(&server.binary)
            .arg("cert")
            .arg("--data")
            .arg(server.scratch.join("data"))
            .output()?;
        let file = server.scratch.join("cert.pem");
        std::fs::write(&file, certificate.stdout)?;
        std::env::set_var("SSL_CERT_FILE", file);
        Ok(server)
    }

    /// Ends the server, in peace or not, and starts it again with the same data at the
    /// same address.
    pub fn restart(&mut self, killed: bool) -> Result<()> {
        if killed {
            self.process.kill()?;
            self.process.wait()?;
        } else {
            self.stop()?;
        }
        (self.process, self.port) = serve(&self.binary, &self.scratch, self.port)?;
        Ok(())
    }

    /// Ends the server in peace.
    pub fn stop(&mut self) -> Result<()> {
        Command::new("kill")
            .arg(self.process.id().to_string())
            .status()?;
        let status = self.process.wait()?;
        if !status.success() {
            return Err(format!("the server is to stop in peace, and ended with {status}").into());
        }
        Ok(())
    }

    /// Makes a client over HTTPS with the settings that the SDK has by itself.
    pub async fn client(&self) -> Result<CosmosClient> {
        let endpoint: AccountEndpoint = format!("https://localhost:{}/", self.port).parse()?;
        let account = AccountReference::with_authentication_key(endpoint, KEY);
        Ok(CosmosClient::builder()
            .build(account, RoutingStrategy::PreferredRegions(Vec::new()))
            .await?)
    }

    /// Moves the time, for example {"advance":"5s"}.
    pub fn clock(&self, movement: &str) -> Result<()> {
        self.ask("POST", "/_mayfly/clock", movement).map(|_| ())
    }

    /// Counts the requests of an operation that the server has answered.
    pub fn requests(&self, operation: &str) -> Result<u64> {
        let prefix = format!("mayfly_requests_total{{operation=\"{operation}\",");
        let page = self.ask("GET", "/_mayfly/metrics", "")?;
        let counts = page
            .lines()
            .filter(|line| line.starts_with(&prefix))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        Ok(counts.sum())
    }

    /// Sends a request that the SDK has no call for.
    fn ask(&self, method: &str, path: &str, body: &str) -> Result<String> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port))?;
        connection.set_read_timeout(Some(REQUEST_LIMIT))?;
        write!(
            connection,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        if !answer.starts_with("HTTP/1.1 200 ") {
            return Err(answer.into());
        }
        Ok(answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

/// Starts the binary, and returns where it listens. Port 0 stands for any.
fn serve(binary: &str, scratch: &Path, port: u16) -> Result<(Child, u16)> {
    let mut process = Command::new(binary)
        .args([
            "serve",
            "--test-clock",
            "--listen",
            &format!("127.0.0.1:{port}"),
            "--data",
        ])
        .arg(scratch.join("data"))
        .env_clear() // so that no MAYFLY_ variable has a say
        .stdout(Stdio::piped())
        .spawn()?;
    // It stays open: a server whose output is closed ends when it writes.
    let output = process.stdout.as_mut().ok_or("the server has no output")?;
    for line in BufReader::new(output).lines() {
        let line = line?;
        if let Some(address) = line.strip_prefix("Mayfly listens on http://") {
            let port = address
                .split_whitespace()
                .next()
                .and_then(|a| a.rsplit(':').next())
                .ok_or("no port")?;
            return Ok((process, port.parse()?));
        }
    }
    Err("the server did not say where it listens".into())
}
