//! A server with an OpenAI-compatible `/v1/embeddings`, on a real socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// How the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingManner {
    /// With a vector for each text, of so many dimensions.
    Well(usize),
    /// With one vector too few.
    Short,
    /// With a vector for each text, and with 400 if one of them has this word.
    Refusing(&'static str),
    /// With 500.
    Failing,
    /// Never.
    Silent,
}

/// What means the same: each line is one dimension.
const MEANINGS: [&[&str]; 3] =
    [&["physician", "doctor", "clinic"], &["automobile", "car", "garage"], &["salary", "wage", "pay"]];

/// The server. Its threads end with the process.
pub struct EmbeddingServer {
    /// With `/v1`.
    pub base_url: String,
    manner: Arc<Mutex<EmbeddingManner>>,
    asked: Arc<Mutex<Vec<Vec<String>>>>,
}

impl EmbeddingServer {
    /// Starts a server on a port of its own.
    pub fn start(manner: EmbeddingManner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let server = Self { base_url, manner: Arc::new(Mutex::new(manner)), asked: Arc::default() };
        let (manner, asked) = (server.manner.clone(), server.asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (manner, asked) = (manner.clone(), asked.clone());
                std::thread::spawn(move || answer(stream, &manner, &asked));
            }
        });
        server
    }

    /// Answers differently from now on.
    pub fn change_manner(&self, manner: EmbeddingManner) {
        *self.manner.lock().unwrap() = manner;
    }

    /// The texts of each request.
    pub fn asked(&self) -> Vec<Vec<String>> {
        self.asked.lock().unwrap().clone()
    }
}

/// Answers the requests of one connection.
fn answer(mut stream: TcpStream, manner: &Mutex<EmbeddingManner>, asked: &Mutex<Vec<Vec<String>>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut head, mut length) = (String::new(), 0);
        while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
        if head.is_empty() {
            return;
        }
        for line in head.lines() {
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
        }
        assert!(head.starts_with("POST /v1/embeddings "), "{head}");
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let request: Value = serde_json::from_slice(&body).unwrap();
        let texts: Vec<String> = serde_json::from_value(request["input"].clone()).unwrap();
        asked.lock().unwrap().push(texts.clone());
        let (status, reply) = match *manner.lock().unwrap() {
            EmbeddingManner::Well(length) => ("200 OK", vectors(&texts, length)),
            EmbeddingManner::Short => ("200 OK", vectors(&texts[1..], 8)),
            EmbeddingManner::Refusing(word) if texts.iter().any(|text| text.contains(word)) => {
                ("400 Bad Request", json!({"error": {"message": "can't embed this input"}}))
            }
            EmbeddingManner::Refusing(_) => ("200 OK", vectors(&texts, 8)),
            EmbeddingManner::Failing => {
                ("500 Internal Server Error", json!({"error": {"message": "out of memory"}}))
            }
            EmbeddingManner::Silent => {
                // Until the client hangs up.
                let _ = reader.read(&mut [0; 1]);
                return;
            }
        };
        let reply = reply.to_string();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            reply.len()
        );
        if stream.write_all((head + &reply).as_bytes()).is_err() {
            return;
        }
    }
}

fn vectors(texts: &[String], length: usize) -> Value {
    let vector = |text: &String| -> Vec<f32> {
        let lower = text.to_lowercase();
        let means = |dimension: usize| {
            MEANINGS.get(dimension).is_some_and(|words| words.iter().any(|word| lower.contains(word)))
        };
        (0..length).map(|dimension| if means(dimension) { 1.0 } else { 0.05 }).collect()
    };
    // In another order than asked, as the protocol allows.
    let item = |(index, text)| json!({"object": "embedding", "index": index, "embedding": vector(text)});
    let data: Vec<Value> = texts.iter().enumerate().rev().map(item).collect();
    json!({"object": "list", "data": data, "usage": {"prompt_tokens": 7, "total_tokens": 7}})
}
