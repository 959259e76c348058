{{- define "bough.image" -}}
{{ .Values.image | default (printf "bough:%s" .Chart.AppVersion) }}
{{- end -}}
