//! Asks a process for a page, as a scraper and a kubelet do, and reads what it says. It refuses to take no answer for one.

use std::{
    io::{self, Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use spanwire_testkit::lab::Host;

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Asks from within `host`; `None`: nobody listens there (yet).
pub(crate) fn ask(host: Option<&Host>, address: &str, path: &str) -> Option<Page> {
    let ask = || request(address, path);
    let answer = match host {
        Some(host) => host.run(ask).unwrap(),
        None => ask(),
    };
    let answer = answer.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Page { status, body: body.to_owned() })
}

fn request(address: &str, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

impl Page {
    /// The value of a series, as it is written.
    pub(crate) fn value(&self, series: &str) -> Option<f64> {
        self.body.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
    }

    /// Series of a metric with their values.
    pub(crate) fn series(&self, metric: &str) -> Vec<(String, f64)> {
        let of_it = self.body.lines().filter(|line| line.starts_with(&format!("{metric}{{")));
        of_it
            .filter_map(|line| line.rsplit_once(' '))
            .map(|(it, value)| (it.to_owned(), value.parse().unwrap()))
            .collect()
    }

    /// All values of labels.
    pub(crate) fn labels(&self) -> Vec<String> {
        let series = self.body.lines().filter(|line| !line.starts_with('#'));
        series.flat_map(|line| line.split('"').skip(1).step_by(2)).map(str::to_owned).collect()
    }
}

/// A port of this host that nobody listens at.
pub(crate) fn free_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}
