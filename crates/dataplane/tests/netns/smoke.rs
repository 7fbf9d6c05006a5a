//! The whole of it once: two gateways, a mesh link, traffic. It refuses to look at details.

use std::time::Duration;

use spanwire_engine::{LinkRole, worker::RouteKind};
use spanwire_testkit::lab::Lab;

use crate::rig::{Gateway, echo};

#[test]
fn two_gateways_talk_over_a_mesh_link() {
    let mut lab = Lab::new().unwrap();
    let a = Gateway::start(lab.host("a").unwrap(), "10.9.0.1");
    let b = Gateway::start(lab.host("b").unwrap(), "10.9.0.2");
    for (me, other, own, theirs) in
        [(&a, &b, "10.9.0.1/32", "10.9.0.2/32"), (&b, &a, "10.9.0.2/32", "10.9.0.1/32")]
    {
        let device = me.device(LinkRole::Mesh, None);
        me.firewall(&[(LinkRole::Mesh, &device)], &[own], &["10.9.0.0/16"], None);
        me.make_table(&["10.9.0.0/16"], &[own]);
        me.make_device(LinkRole::Mesh, None, 51820);
        me.make_peer(&device, other, &[theirs], Some(51820));
        me.route(RouteKind::Exact, theirs, &device);
    }
    assert!(echo((&a.host, a.tunnel), (&b.host, b.tunnel), Duration::from_secs(10)));
    assert!(a.observe().firewall.is_some());
}
