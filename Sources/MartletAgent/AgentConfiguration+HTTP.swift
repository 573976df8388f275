import Foundation
import MartletKafka

extension AgentConfiguration {
    /// The environment variable with the token of the HTTP endpoints.
    public static let httpTokenVariable = "MARTLET_HTTP_TOKEN"

    /// The environment variable with the password for the broker; `kafka.sasl.username` names the user.
    public static let kafkaPasswordVariable = "MARTLET_KAFKA_PASSWORD"

    /// Applies values from the environment, which override the file.
    public mutating func readEnvironment(_ environment: [String: String]) {
        if let token = environment[Self.httpTokenVariable], !token.isEmpty { http.token = Secret(token) }
        if let password = environment[Self.kafkaPasswordVariable], !password.isEmpty {
            kafka.credentials?.password = Secret(password)
        }
        telemetry.readEnvironment(environment)
    }

    mutating func readHTTP(_ reader: inout KeyReader, _ readFile: (String) throws -> String) {
        http.listen = reader.text("http.listen")
        if let file = reader.text("http.tokenFile"),
            let token = reader.contents(of: file, "http.tokenFile", readFile)
        {
            secretFiles["http.tokenFile"] = file
            if token.isEmpty {
                reader.problem("http.tokenFile: \(file) is empty; write a token to it: openssl rand -hex 32")
            }
            http.token = Secret(token)
        }
        if let values = reader.bool("http.values") { http.showsValues = values }
        guard let lag = reader.text("http.readyLag") else { return }
        guard let limit = HTTPConfiguration.ReadyLag(text: lag) else {
            return reader.problem("http.readyLag: \(lag) is neither a duration (30s) nor a whole number of messages")
        }
        http.readyLag = limit
    }
}
