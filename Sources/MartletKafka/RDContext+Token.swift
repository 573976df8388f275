import CRdKafka
import Synchronization

extension RDContext {
    /// Makes librdkafka ask for tokens on its own background thread, since some clients are polled seldom. Call this
    /// before the client is created.
    static func setTokenCallback(_ configuration: OpaquePointer) {
        rd_kafka_conf_enable_sasl_queue(configuration, 1)
        // Called before the first login, at four fifths of the token's lifetime, and ten seconds after a failure.
        rd_kafka_conf_set_oauthbearer_token_refresh_cb(configuration) { client, _, opaque in
            guard let client else { return }
            RDContext.of(opaque)?.refreshToken(of: client)
        }
    }

    /// Lets librdkafka run the callback by itself. Call this after the client is created.
    ///
    /// - Returns: the reason if that is not possible, nil on success.
    static func enableTokenCallback(_ client: OpaquePointer) -> String? {
        guard let error = rd_kafka_sasl_background_callbacks_enable(client) else { return nil }
        defer { rd_kafka_error_destroy(error) }
        return rd_kafka_error_string(error).map { String(cString: $0) } ?? "librdkafka asks for no token"
    }

    /// Does what librdkafka should have asked for by now; see ``TokenSchedule``. To be called from time to time, on any
    /// thread.
    func refreshOverdueToken(of client: OpaquePointer) {
        guard tokenFile != nil, tokenSchedule.withLock({ $0.isOverdue(at: .now) }) else { return }
        refreshToken(of: client)
    }

    /// Gives the client the present token of the file, or the reason why there is none. In that case librdkafka keeps
    /// the previous token, and reports an error of the client if the reason differs from the last one.
    private func refreshToken(of client: OpaquePointer) {
        guard let tokenFile else { return }
        tokenSchedule.withLock { $0.noteReading(at: .now) }
        let now = KafkaTokenFile.now
        do throws(KafkaTokenError) {
            let token = try tokenFile.read(now: now)
            try set(token, until: tokenFile.end(of: token, now: now), of: client, as: tokenFile.principal)
        } catch {
            rd_kafka_oauthbearer_set_token_failure(client, error.reason)
        }
    }

    private func set(
        _ token: KafkaToken, until end: Int64, of client: OpaquePointer, as principal: String
    ) throws(KafkaTokenError) {
        var reason = ""
        let code = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
            buffer.initialize(repeating: 0)
            let code = rd_kafka_oauthbearer_set_token(
                client, token.value.value, end, token.subject ?? principal, nil, 0, buffer.baseAddress, buffer.count)
            reason = buffer.baseAddress.map { String(cString: $0) } ?? ""
            return code
        }
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
            throw KafkaTokenError(reason.isEmpty ? String(cString: rd_kafka_err2str(code)) : reason)
        }
    }
}
