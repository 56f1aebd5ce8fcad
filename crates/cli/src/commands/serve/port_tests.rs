use std::net::TcpListener;

use super::*;

#[test]
fn the_process_that_listens_on_a_port_is_found() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();

    let holder = port_holder(port).unwrap();

    assert!(holder.starts_with(&format!("process {} (", std::process::id())), "{holder}");
    drop(listener);
    assert_eq!(port_holder(port), None);
}
