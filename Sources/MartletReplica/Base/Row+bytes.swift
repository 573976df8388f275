package import Foundation
package import GRDB

extension Row {
    package func bytes(_ name: String) -> [UInt8] {
        let data: Data? = self[name]
        return data.map(Array.init) ?? []
    }
}

extension Date {
    package init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1000) }
}
