import MartletCore
import Testing

@Suite struct HexTests {
    @Test func everyByteHasTwoLowercaseDigits() {
        #expect(Hex.text([0, 9, 10, 0x7f, 0x80, 0xff]) == "00090a7f80ff")
        #expect(Hex.text([]) == "")
    }

    @Test func everyDigitHasItsValueInEitherCase() {
        for byte in UInt8.min ... .max {
            let expected = Character(UnicodeScalar(byte)).hexDigitValue
            #expect(Hex.value(byte).map { Int($0) } == expected, "byte \(byte)")
        }
    }
}
