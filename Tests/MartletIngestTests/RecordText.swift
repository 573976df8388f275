import MartletCore
import MartletIngest

/// Writes records as the connectors and their JSON converter do.
enum RecordText {
    /// A key or a value with its schema.
    static func withSchema(_ schema: String, _ payload: String) -> String {
        #"{"schema":\#(schema),"payload":\#(payload)}"#
    }

    /// The schema of a struct with these fields, each given as the members of its own schema.
    static func structure(_ fields: KeyValuePairs<String, String>, field: String? = nil) -> String {
        let fields = fields.map { #"{\#($0.value),"optional":true,"field":"\#($0.key)"}"# }
        let name = field.map { #","field":"\#($0)""# } ?? ""
        return #"{"type":"struct","fields":[\#(fields.joined(separator: ","))],"optional":true\#(name)}"#
    }

    /// The schema of an envelope whose rows have these fields.
    static func envelopeSchema(_ fields: KeyValuePairs<String, String>) -> String {
        let parts = [
            structure(fields, field: "before"), structure(fields, field: "after"),
            #"{"type":"struct","fields":[{"type":"string","field":"connector"}],"field":"source"}"#,
            #"{"type":"string","optional":false,"field":"op"}"#,
        ]
        return
            #"{"type":"struct","fields":[\#(parts.joined(separator: ","))],"name":"s.public.t.Envelope","version":1}"#
    }

    static func envelope(
        _ operation: String, before: String = "null", after: String = "null",
        source: String = #"{"connector":"postgresql","ts_ms":1764316800000}"#
    ) -> String {
        #"{"before":\#(before),"after":\#(after),"source":\#(source),"op":"\#(operation)","ts_ms":1764316800120}"#
    }
}

extension RecordDecoder {
    func decode(key: String?, value: String?) throws(IngestError) -> SourceEvent? {
        try decode(key: key.map { Array($0.utf8) }, value: value.map { Array($0.utf8) })
    }
}

/// Returns the code of the error that reading the record throws.
func failure(_ decoder: RecordDecoder, key: String?, value: String?) -> IngestError.Code? {
    do {
        _ = try decoder.decode(key: key, value: value)
        return nil
    } catch {
        return error.code
    }
}
