{{/* Name of the Secret that leads to the control cluster. */}}
{{- define "spanwire.controlSecret" -}}
{{- .Values.worker.control.secretName | default (printf "spanwire-control-%s" .Values.worker.gateway) -}}
{{- end -}}

{{/* Where a process in the node's network listens: (list . "worker"). */}}
{{- define "spanwire.nodeListen" -}}
{{- $metrics := (index . 0).Values.metrics -}}
{{- $host := ternary $metrics.host "127.0.0.1" $metrics.enabled -}}
--metrics-listen={{ $host }}:{{ get $metrics.ports (index . 1) }}
{{- end -}}

{{/* The kubelet asks from the node's network: (list . "/readyz"). */}}
{{- define "spanwire.nodeProbe" -}}
httpGet:
  {{- if not (index . 0).Values.metrics.enabled }}
  host: 127.0.0.1
  {{- end }}
  path: {{ index . 1 }}
  port: metrics
{{- end -}}

{{/* What the pods on gateway nodes have in common. */}}
{{- define "spanwire.nodePod" -}}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.worker.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.worker.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.worker.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsUser: 0
  runAsGroup: 0
  seccompProfile:
    type: RuntimeDefault
  {{- with .Values.worker.seLinuxOptions }}
  seLinuxOptions:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* Why these, and nothing more: docs/adr/0018. */}}
{{- define "spanwire.nodeSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
  add: [NET_ADMIN]
{{- end -}}

{{/* Flags that say what a worker may use on its node; --uninstall needs the same. */}}
{{- define "spanwire.workerNumbers" -}}
{{- with .Values.worker -}}
- --gateway={{ .gateway }}
- --sysctl-dir=/host/proc/sys/net
{{- with .ports }}
- --ports={{ . }}
{{- end }}
{{- with .tables }}
- --tables={{ . }}
{{- end }}
{{- with .probeTable }}
- --probe-table={{ int . }}
{{- end }}
{{- with .rulePriority }}
- --rule-priority={{ int . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The sockets of the dataplane, and what lasts until the next boot. */}}
{{- define "spanwire.socketMounts" -}}
- name: run
  mountPath: /run/spanwire
- name: uapi
  mountPath: /var/run/wireguard
{{- if .Values.dataplane.userspace }}
- name: tun
  mountPath: /dev/net/tun
{{- end }}
{{- end -}}

{{- define "spanwire.socketVolumes" -}}
- name: run
  hostPath:
    path: /run/spanwire
    type: DirectoryOrCreate
- name: uapi
  hostPath:
    path: /var/run/wireguard
    type: DirectoryOrCreate
{{- if .Values.dataplane.userspace }}
- name: tun
  hostPath:
    path: /dev/net/tun
    type: CharDevice
{{- end }}
{{- end -}}

{{/* The container's own /proc/sys can't be written. */}}
{{- define "spanwire.sysctlMount" -}}
- name: sysctl
  mountPath: /host/proc/sys/net
{{- end -}}

{{- define "spanwire.sysctlVolume" -}}
- name: sysctl
  hostPath:
    path: /proc/sys/net
    type: Directory
{{- end -}}
