//! A second process for what another one acts for: on another host, or on the same one after a reboot. It refuses rights
//! that the first one does not have.

use std::fs;

use spanwire_api::rbac;
use spanwire_testkit::process::Process;

use super::{Gateway, Site, start};

impl Site {
    /// Lets this host act for the gateway of another one, with the same records: its worker moved here.
    pub(crate) fn move_to(&self, host: Gateway, gateway: &Gateway) -> Gateway {
        self.act_for(host, gateway, gateway.namespaces[1].clone())
    }

    /// Lets this host act for the gateway of another one, with records and a key of its own: its worker is installed anew.
    pub(crate) fn install_on(&self, host: Gateway, gateway: &Gateway) -> Gateway {
        let own = host.namespaces[1].clone();
        let role = rbac::worker_local_role(&own, &gateway.name);
        self.own.account(&own, &rbac::worker_role_name(&gateway.name), Some(&role));
        self.act_for(host, gateway, own)
    }

    fn act_for(&self, mut host: Gateway, gateway: &Gateway, own: String) -> Gateway {
        host.name.clone_from(&gateway.name);
        host.namespaces = [gateway.namespaces[0].clone(), own];
        let account = rbac::worker_role_name(&host.name);
        let files = [&self.control, &self.own].into_iter().enumerate().map(|(at, server)| {
            let user = format!("system:serviceaccount:{}:{account}", host.namespaces[at]);
            let file = server.plane.kubeconfig_by(&server.proxy, Some(&host._doors[at]), &user).unwrap();
            file.display().to_string()
        });
        let files: Vec<String> = files.collect();
        host.variables = vec![("KUBECONFIG".to_owned(), files.join(":"))];
        host
    }

    /// A controller that goes on, on the host of a gateway.
    pub(crate) fn start_controller_on(&self, gateway: &Gateway) -> Process {
        let door = &gateway._doors[0];
        let file =
            self.control.plane.kubeconfig_by(&self.control.proxy, Some(door), &self.controller).unwrap();
        let variables = vec![("KUBECONFIG".to_owned(), file.display().to_string())];
        let arguments = ["controller", "--control", "kube", "--control-namespace", &self.namespace];
        let arguments = arguments.into_iter().map(Into::into).collect();
        start(Some(&gateway.host), &gateway.folder.join("controller.log"), arguments, &variables)
    }
}

impl Gateway {
    /// Takes away what a boot would: devices, rules, the packet filter, and what lasts until then. The dataplane is
    /// started again, as at a boot.
    pub(crate) fn reboot(&mut self) {
        self._dataplane.kill().unwrap();
        let clear = "nft flush ruleset
            for family in -4 -6; do
                ip $family rule flush
                ip $family rule add from all lookup main priority 32766
                for table in $(ip $family route show table all | sed -n 's/.* table \\([0-9][0-9]*\\).*/\\1/p' | sort -u); do
                    ip $family route flush table $table
                done
            done";
        self.host.output("sh", &["-c", clear], "").unwrap();
        let _ = fs::remove_dir_all(self.folder.join("run"));
        self._dataplane.restart().unwrap();
    }
}
